import Larder
import LarderTestSupport
import Testing

/// The engines that keep the contract of `StorageEngine`.
enum EngineKind: CaseIterable, CustomTestStringConvertible {
  case levelDB
  case inMemory

  var testDescription: String { "\(self)" }
}

/// Runs `body` with a new engine, then closes it.
func withEngine<R>(
  _ kind: EngineKind, cursorSliceEntries: Int = 100_000, _ body: (any StorageEngine) throws -> R
) throws -> R {
  let directory = try TemporaryDirectory()
  var options = LevelDBOptions()
  options.cursorSliceEntries = cursorSliceEntries
  let engine: any StorageEngine =
    switch kind {
    case .levelDB: try LevelDBEngine(at: directory.path, options: options)
    case .inMemory: InMemoryEngine(cursorSliceEntries: cursorSliceEntries)
    }
  let result = try body(engine)
  try engine.close()
  return result
}

struct Entry: Hashable {
  var key: [UInt8]
  var value: [UInt8]

  init(_ key: String, _ value: String) {
    self.init(bytes(key), bytes(value))
  }

  init(_ key: [UInt8], _ value: [UInt8]) {
    self.key = key
    self.value = value
  }
}

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

extension Stamp {
  /// The stamp in the tests' values, and in the crash worker's.
  static let test = Stamp(at: 24)
}

extension ValueSeparation {
  /// The tests' keys begin with "k" or "key", and byte 20 of a value with a stamp is zero.
  static func test(from thresholdBytes: Int?) -> ValueSeparation? {
    thresholdBytes.map {
      ValueSeparation(
        keySpace: UInt8(ascii: "k"), flagOffset: 20, flag: 0x10, stamp: .test, thresholdBytes: $0)
    }
  }
}

extension WriteBatch {
  /// Adds a put of a stamped value, whose payload is all bytes after the stamp.
  mutating func putSeparable(
    _ key: [UInt8], _ value: [UInt8], if requirement: Int? = nil, keepsPayload: Bool = false
  ) {
    putSeparable(
      key.span.bytes, stamp: .test, if: requirement, keepsPayload: keepsPayload
    ) { buffer in
      buffer.append(value)
      return value.count - Stamp.test.end
    }
  }
}

func isIntact(_ value: [UInt8], key: [UInt8]) -> Bool {
  Stamp.test.isIntact(value.span.bytes, key: key.span.bytes)
}

func sequence(of value: [UInt8]) -> UInt64? {
  Stamp.test.sequence(of: value.span.bytes)
}

/// The key of the engine's own row; see `CommitSequence`.
let engineRow = CommitSequence.key

/// A value with room for a stamp, filled with `mark`.
func stampedValue(_ mark: UInt8, tail: Int = 5) -> [UInt8] {
  Array(repeating: mark, count: 20) + Array(repeating: 0, count: Stamp.test.offset - 20)
    + Array(repeating: 0, count: Stamp.test.end - Stamp.test.offset)
    + Array(repeating: mark, count: tail)
}

extension StorageEngine {
  func value(_ key: String) throws(StoreError) -> String? {
    try value(bytes(key)).map { String(decoding: $0, as: UTF8.self) }
  }

  func value(_ key: [UInt8]) throws(StoreError) -> [UInt8]? {
    try get(key.span.bytes)
  }

  func read(_ key: String, into buffer: inout ValueBuffer) throws(StoreError) -> Bool {
    try get(bytes(key).span.bytes, into: &buffer)
  }

  @discardableResult
  func put(_ key: String, _ value: String) throws(StoreError) -> Commit {
    try put(bytes(key), bytes(value))
  }

  @discardableResult
  func put(_ key: [UInt8], _ value: [UInt8], stamped: Bool = false) throws(StoreError) -> Commit {
    var batch = WriteBatch()
    batch.put(key.span.bytes, stamp: stamped ? .test : nil) { $0.append(value) }
    return try write(&batch, synced: false)
  }

  func remove(_ key: String) throws(StoreError) {
    var batch = WriteBatch()
    batch.remove(bytes(key).span.bytes)
    try write(&batch, synced: false)
  }

  /// All entries of a range, without the engine's own row.
  func entries(in range: EngineRange = EngineRange()) throws(StoreError) -> [Entry] {
    let cursor = try cursor(over: range)
    var entries: [Entry] = []
    while try cursor.next() { entries.append(cursor.entry) }
    return entries.filter { $0.key != engineRow }
  }

  /// All entries of a range in reverse order, without the engine's own row.
  func entriesBackwards(in range: EngineRange = EngineRange()) throws(StoreError) -> [Entry] {
    let cursor = try cursor(over: range)
    try cursor.seekToEnd()
    var entries: [Entry] = []
    while try cursor.previous() { entries.append(cursor.entry) }
    return entries.filter { $0.key != engineRow }
  }
}

extension EngineCursor {
  var entry: Entry {
    withEntry { key, value in
      Entry(
        key.withUnsafeBytes { [UInt8]($0) }, value.withUnsafeBytes { [UInt8]($0) })
    }
  }

  var key: String { String(decoding: entry.key, as: UTF8.self) }
}

extension WriteBatch {
  mutating func put(_ key: String, _ value: String, if requirement: Int? = nil) {
    put(Array(key.utf8), Array(value.utf8), if: requirement)
  }

  mutating func put(_ key: [UInt8], _ value: [UInt8], if requirement: Int? = nil) {
    put(key.span.bytes, value.span.bytes, if: requirement)
  }

  mutating func remove(_ key: String, if requirement: Int? = nil) {
    remove(Array(key.utf8), if: requirement)
  }

  mutating func remove(_ key: [UInt8], if requirement: Int? = nil) {
    remove(key.span.bytes, if: requirement)
  }

  mutating func require(_ key: String, _ condition: Condition) -> Int {
    require(Array(key.utf8).span.bytes, condition)
  }
}
