import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Every number that a store, a cache or a clock takes is in its documented range, or refused.
@Suite struct OptionRangeTests {
  /// An option of a store, the range that its documentation names, and how it is set.
  struct Row: CustomTestStringConvertible, Sendable {
    let name: String
    /// The bounds as the error writes them.
    let bounds: String
    let isAllowed: @Sendable (Double) -> Bool
    /// Sets the option to a value; false if the option cannot hold it.
    let set: @Sendable (inout Store.Options, Double) -> Bool

    var testDescription: String { name }

    static func integer(
      _ name: String, _ range: ClosedRange<Int>,
      _ set: @escaping @Sendable (inout Store.Options, Int) -> Void
    ) -> Row {
      Row(name: name, bounds: "\(range.lowerBound) to \(range.upperBound)") { value in
        Int(clamping: value).map(range.contains) ?? false
      } set: { options, value in
        guard let integer = Int(clamping: value) else { return false }
        set(&options, integer)
        return true
      }
    }
  }

  static let rows: [Row] = [
    .integer("byteBudget", 1...Int.max) { $0.byteBudget = $1 },
    .integer("diskBudget", (4 << 20)...Int.max) { $0.diskBudget = $1 },
    .integer("writeBufferBytes", (64 << 10)...(1 << 30)) { $0.writeBufferBytes = $1 },
    .integer("blockCacheBytes", 0...Int.max) { $0.blockCacheBytes = $1 },
    .integer("blockBytes", (1 << 10)...(4 << 20)) { $0.advanced.blockBytes = $1 },
    .integer("maxFileBytes", (1 << 20)...(1 << 30)) { $0.advanced.maxFileBytes = $1 },
    .integer("maxOpenFiles", 74...50_000) { $0.advanced.maxOpenFiles = $1 },
    Row(name: "sweepInterval", bounds: "1 to 31,536,000 seconds") {
      (1...31_536_000).contains($0)
    } set: {
      guard abs($1) < 1e18 else { return false }
      $0.sweepInterval = .seconds($1)
      return true
    },
  ]

  static let values: [Double] = [
    0, -0.0, -1, 0.5, 1, 64, 65, 73, 74, 75, 101, 65_535, 65_536, 31_536_000, 31_536_001, 1e9, 1e18,
    1e19, -1e19, 1e30, 1e300, -1e300, .greatestFiniteMagnitude, -.greatestFiniteMagnitude,
    .leastNonzeroMagnitude, .infinity, -.infinity, .nan, .signalingNaN,
  ]

  @Test(
    "An option of any value opens a store that works, or is an invalid argument.", arguments: rows)
  func optionsOfAnyValue(row: Row) throws {
    for value in Self.values {
      let place = try TemporaryDirectory()
      var options = Store.Options()
      guard row.set(&options, value) else { continue }
      if let message = try refusal({ try use(options, at: place.path("store")) }) {
        #expect(!row.isAllowed(value), "\(row.name) of \(value)")
        #expect(message.hasPrefix("\(row.name) is "), "\(message)")
        #expect(message.hasSuffix("outside \(row.bounds)"), "\(message)")
        // A refused option creates nothing.
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.path).isEmpty)
      } else {
        #expect(row.isAllowed(value), "\(row.name) of \(value)")
      }
    }
  }

  private func use(_ options: Store.Options, at path: String) throws {
    let store = try Store(at: URL(filePath: path), options: options)
    let cache = try store.cache("cache", of: Int.self)
    // A record takes more than a budget of a few bytes.
    if options.byteBudget ?? .max >= 1000 {
      try cache.save(1, for: "key")
      #expect(try cache.value(for: "key") == 1)
    }
    try store.sweep()
    try store.close()
  }

  /// The message of the invalid argument that `body` throws; nil if it throws nothing.
  private func refusal(_ body: () throws -> Void) throws -> String? {
    do {
      try body()
      return nil
    } catch let error as StoreError {
      guard case .invalidArgument(let message) = error else { throw error }
      return message
    }
  }

  @Test("A cache's budget of any value is at least 1, or an invalid argument.")
  func budgetsOfAnyValue() throws {
    let store = Store.inMemory()
    for (number, budget) in [Int.min, -1, 0, 1, 1 << 20, .max].enumerated() {
      let message = try refusal {
        _ = try store.cache("cache \(number)", of: Int.self, byteBudget: budget)
      }
      #expect((message == nil) == (budget >= 1), "\(budget)")
    }
  }

  @Test("The longest lifetimes can be saved, read, described and swept.")
  func longLifetimes() throws {
    let clock = ManualClock()
    var options = Store.Options()
    options.clock = clock
    let store = Store.inMemory(options: options)
    let longest = Double.greatestFiniteMagnitude
    let limits: [MaxAge] = [
      .seconds(0), .seconds(86_400), .seconds(1e15), .seconds(1e300), .seconds(longest),
      // A whole number of days that no `Int` holds.
      .seconds(86_400 * 0x1p100), .days(3_650_000), .days(3_650_000, calendar: .current),
      .unlimited,
    ]
    for (number, limit) in limits.enumerated() {
      for (other, extra) in limits.enumerated() {
        let lifetime = Lifetime.fresh(for: limit, thenStaleFor: extra)
        #expect(lifetime.description.hasPrefix(limit == .unlimited ? "never" : "fresh for "))
        let cache = try store.cache("\(number) \(other)", of: Int.self, lifetime: lifetime)
        try cache.save(1, for: "key")
        #expect(try cache.value(for: "key") == (number == 0 ? nil : 1), "\(lifetime)")
      }
    }
    try store.sweep()
    clock.advance(by: .seconds(1e15))
    try store.sweep()
  }

  @Test("Numbers that only a programmer's error can cause end the process with a message.")
  func programmersErrors() async {
    await #expect(processExitsWith: .failure) { _ = MaxAge.seconds(-1) }
    await #expect(processExitsWith: .failure) { _ = MaxAge.seconds(.infinity) }
    await #expect(processExitsWith: .failure) { _ = MaxAge.days(3_650_001) }
    await #expect(processExitsWith: .failure) { ManualClock().advance(by: .seconds(-1)) }
    await #expect(processExitsWith: .failure) {
      ManualClock().advance(by: .seconds(1_000_000_000_000_001))
    }
    await #expect(processExitsWith: .failure) {
      var options = Store.Options()
      options.byteBudget = 0
      _ = Store.inMemory(options: options)
    }
  }
}

extension Int {
  /// The integer next to `value` in the direction of zero, or the last one there is; nil for what
  /// is no number.
  fileprivate init?(clamping value: Double) {
    guard !value.isNaN else { return nil }
    self = Int(exactly: value.rounded(.towardZero)) ?? (value < 0 ? .min : .max)
  }
}
