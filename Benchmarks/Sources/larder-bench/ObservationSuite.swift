import Foundation
import Larder

/// Saving to a cache with an unread stream of changes, against saving to one without a stream.
struct ObservationSuite {
  private let operations: Int
  private let values: [Data]
  private let stores: [Store]
  private let caches: [Cache<Int, Data>]
  private let changes: Changes<Int, Data>

  init(_ scale: BenchScale, in workspace: Workspace) throws {
    operations = scale.visited / 10
    var random = WorkloadRandom(seed: Scale.seed)
    values = (0..<64).map { _ in
      Data((0..<400).map { _ in UInt8(truncatingIfNeeded: random.next()) })
    }
    stores = try ["observed", "unobserved"].map { try Store(at: workspace.directory($0)) }
    caches = try stores.map { store in
      try store.cache("values", of: Data.self, keyedBy: Int.self, coder: .bytes)
    }
    changes = caches[0].changes()
  }

  func close() throws { for store in stores { try store.close() } }

  var contests: [Contest] {
    [
      Contest(
        name: "save 400 B, observed by a reader who does not read", operations: operations,
        a: { try save(to: caches[0]) }, b: { try save(to: caches[1]) })
    ]
  }

  private func save(to cache: Cache<Int, Data>) throws -> Duration {
    // Keeps the stream alive.
    try withExtendedLifetime(changes) {
      try timed(expecting: operations) {
        for step in 0..<operations { try cache.save(values[step % 64], for: step % 1000) }
        return operations
      }
    }
  }
}
