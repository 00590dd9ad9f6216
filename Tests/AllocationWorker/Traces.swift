import Foundation
import Larder
import LarderTestSupport

/// The operations that `Scripts/trace` traces.
enum Traces: String {
  case save
  case read
  case largeRead = "large-read"
  case load

  /// The number of entries to read, which a trace does not depend on.
  private static let entries = 60

  private struct Small: Codable {
    var id: Int
    var name: String
  }

  private static let small = Small(id: 7, name: "a name that is too long for a small string")

  /// Repeats the operation on a new store in `path`, at most 60 times, with another key each time.
  func run(_ count: Int, in path: String) throws {
    let store = try Store(at: URL(filePath: path))
    let small = try store.cache("small", of: Small.self)
    switch self {
    case .save: for number in 0..<count { try small.save(Self.small, for: "\(number)") }
    case .read: try read(count, from: small, holding: Self.small)
    case .largeRead:
      let large = try store.cache("large", of: Data.self, coder: .bytes)
      try read(count, from: large, holding: Data(repeating: 1, count: 20_000))
    case .load: load(count, into: small)
    }
    try store.close()
  }

  /// Reads entries that no read has put into memory.
  private func read<Value>(_ count: Int, from cache: Cache<String, Value>, holding value: Value)
    throws
  {
    for number in 0..<Self.entries { try cache.save(value, for: "\(number)") }
    for number in 0..<count { _ = try cache.value(for: "\(number)") }
  }

  private func load(_ count: Int, into cache: Cache<String, Small>) {
    let end = Flag()
    // Valgrind fails if the main thread ends first, as it does with an asynchronous `main`.
    Task.detached {
      do {
        for number in 0..<count { _ = try await cache.value(for: "\(number)") { Self.small } }
        end.raise()
      } catch { fatalError("\(error)") }
    }
    end.wait()
  }
}
