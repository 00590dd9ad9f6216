import Crypto
import Foundation
import Larder

/// Measures what a key costs: two stores, one with a key and one without, take turns.
///
/// The figures are medians of the turns, in microseconds for one call.
@main struct SealCosts {
  private static let turns = 9

  static func main() throws {
    let directory = FileManager.default.temporaryDirectory
      .appending(path: "larder-seal-costs-\(UUID())")
    defer {
      do { try FileManager.default.removeItem(at: directory) } catch { say("\(error)") }
    }
    say("    bytes  call           without a key     with a key     more")
    for (bytes, count) in [(100, 20_000), (2_000, 5_000), (100_000, 400), (1 << 20, 60)] {
      try measure(bytes, count, in: directory.appending(path: "\(bytes)"))
    }
  }

  private static func measure(_ bytes: Int, _ count: Int, in directory: URL) throws {
    let value = Data((0..<bytes).map { _ in UInt8.random(in: 0...255) })
    let sides = try [
      Side(in: directory.appending(path: "plain"), nil),
      Side(in: directory.appending(path: "sealed"), .key(id: "1", SymmetricKey(size: .bits256))),
    ]
    for turn in 0..<turns {
      for side in turn.isMultiple(of: 2) ? sides : sides.reversed() {
        try side.run(value, count)
      }
    }
    for (index, call) in ["save", "read from disk", "read from memory"].enumerated() {
      let (plain, sealed) = (sides[0].median(index), sides[1].median(index))
      let size = index == 0 ? "\(bytes)" : ""
      say(
        pad(size, 9) + "  " + call + pad("", 18 - call.count) + pad(text(plain), 10)
          + pad(text(sealed), 15) + pad((sealed < plain ? "" : "+") + text(sealed - plain), 9))
    }
    for side in sides { try side.store.close() }
  }

  private static func text(_ microseconds: Double) -> String {
    String(format: "%.2f", microseconds)
  }

  private static func pad(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(width - text.count, 0)) + text
  }

  private static func say(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
  }
}

/// A store, and the times of its calls.
private final class Side {
  let store: Store
  private let onDisk: Cache<Int, Data>
  private let inMemory: Cache<Int, Data>
  private var times: [[Double]] = [[], [], []]

  struct Wrong: Error {}

  init(in directory: URL, _ encryption: Encryption?) throws {
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    var options = Store.Options()
    options.sweepInterval = nil
    options.encryption = encryption
    store = try Store(at: directory.appending(path: "store"), options: options)
    onDisk = try store.cache(
      "disk", of: Data.self, keyedBy: Int.self, coder: .bytes, memory: .none)
    inMemory = try store.cache("memory", of: Data.self, keyedBy: Int.self, coder: .bytes)
  }

  func run(_ value: Data, _ count: Int) throws {
    try inMemory.save(value, for: 0)
    guard try inMemory.value(for: 0) == value else { throw Wrong() }
    try time(0, count) { try onDisk.save(value, for: $0) }
    try time(1, count) { guard try onDisk.value(for: $0) == value else { throw Wrong() } }
    try time(2, count) { _ in
      guard try inMemory.value(for: 0)?.count == value.count else { throw Wrong() }
    }
  }

  private func time(_ call: Int, _ count: Int, _ body: (Int) throws -> Void) rethrows {
    let start = ContinuousClock.now
    for key in 0..<count { try body(key) }
    times[call].append((ContinuousClock.now - start) / .microseconds(1) / Double(count))
  }

  func median(_ call: Int) -> Double { times[call].sorted()[times[call].count / 2] }
}
