import AcceptanceRows
import Larder
import LarderTestSupport
import Testing

/// Payloads in segments read back as if they had never been separated.
@Suite(.acceptance) struct SeparationTests {
  static func options(from threshold: Int?, segmentBytes: Int = 64 << 10) -> LevelDBOptions {
    var options = LevelDBOptions()
    options.separation = .test(from: threshold)
    options.segmentBytes = segmentBytes
    return options
  }

  /// Reads a value, and expects it to be intact.
  static func expect(
    _ tail: [UInt8]?, under key: [UInt8], in engine: LevelDBEngine,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let value = try engine.value(key)
    #expect(value.map { isIntact($0, key: key) } ?? true, sourceLocation: sourceLocation)
    #expect(
      value.map { Array($0[Stamp.test.end...]) } == tail, sourceLocation: sourceLocation)
  }

  static func put(
    _ key: [UInt8], _ tail: [UInt8], in engine: LevelDBEngine, synced: Bool = false
  ) throws {
    var batch = WriteBatch()
    batch.putSeparable(key, stampedValue(1, tail: 0) + tail)
    try engine.write(&batch, synced: synced)
  }

  static func segments(of directory: borrowing TemporaryDirectory) throws -> [String] {
    try SystemFiles().names(in: directory.path).filter { $0.hasSuffix(".segment") }.sorted()
  }

  @Test(
    "Values of all sizes read back, after a reopening too.", arguments: [1, 100, 4096, 1 << 20])
  func roundTrip(threshold: Int) throws {
    let directory = try TemporaryDirectory()
    let options = Self.options(from: threshold)
    var random = SplitMix64(seed: 7)
    var tails: [[UInt8]: [UInt8]] = [:]
    for size in [0, 1, 99, 100, 101, 4095, 4096, 4097, 70_000, 300_000, 1 << 20] {
      tails[bytes("key \(size)")] = random.bytes(size)
    }
    for round in 0..<3 {
      let engine = try LevelDBEngine(at: directory.path, options: options)
      for (key, tail) in tails {
        if round == 0 { try Self.put(key, tail, in: engine) }
        try Self.expect(tail, under: key, in: engine)
      }
      let scanned = try engine.entries()
      #expect(scanned.count == tails.count)
      for entry in scanned + (try engine.entriesBackwards()) {
        #expect(isIntact(entry.value, key: entry.key))
        #expect(Array(entry.value[Stamp.test.end...]) == tails[entry.key])
      }
      if round == 1 { try engine.compact(EngineRange()) }
      try engine.close()
    }
    #expect(try !Self.segments(of: directory).isEmpty)
  }

  @Test("A cursor over heads lends what is before the payload, and the size of the whole value.")
  func heads() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path, options: Self.options(from: 1000))
    let sizes = [10, 5000, 999, 1000, 70_000]
    for (number, size) in sizes.enumerated() {
      try Self.put(bytes("key \(number)"), Array(repeating: 7, count: size), in: engine)
    }
    let values = try engine.entries()
    for file in try Self.segments(of: directory) { try SystemFiles().remove(directory.path(file)) }
    let cursor = try engine.headCursor(over: EngineRange(prefix: bytes("key")))
    func check(_ numbers: [Int], _ move: () throws -> Bool) throws {
      for number in numbers {
        #expect(try move())
        let isSeparated = sizes[number] >= 1000
        let value = values[number].value
        #expect(cursor.entry.key == values[number].key)
        #expect(cursor.entry.value == (isSeparated ? Array(value[..<Stamp.test.end]) : value))
        #expect(cursor.valueCount == value.count)
        var buffer = ValueBuffer()
        let key = values[number].key
        let count = try engine.getHead(key.span.bytes, into: &buffer)
        #expect(count == value.count)
        #expect(buffer.withBytes { [UInt8]($0) } == cursor.entry.value)
      }
      #expect(try !move())
    }
    try check([0, 1, 2, 3, 4]) { try cursor.next() }
    try check([4, 3, 2, 1, 0]) { try cursor.previous() }
    try check([0, 1, 2, 3, 4]) { try cursor.next() }
    var buffer = ValueBuffer()
    let missing = bytes("key")
    let count = try engine.getHead(missing.span.bytes, into: &buffer)
    #expect(count == nil)
    try engine.close()
  }

  @Test("Values below the threshold, without a stamp, or under other keys stay in LevelDB.")
  func notSeparated() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path, options: Self.options(from: 1000))
    try Self.put(bytes("key"), Array(repeating: 7, count: 999), in: engine)
    try Self.put(bytes("other"), Array(repeating: 7, count: 5000), in: engine)
    try engine.put(bytes("key 2"), Array(repeating: 0, count: 5000))
    try Self.expect(Array(repeating: 7, count: 999), under: bytes("key"), in: engine)
    try Self.expect(Array(repeating: 7, count: 5000), under: bytes("other"), in: engine)
    #expect(try Self.segments(of: directory).isEmpty)
    let marker = try SystemFiles().read("\(directory.path)/LARDER", limit: 64)
    #expect(StoreMarker.formatVersion(in: marker) == 1)
    try engine.close()
  }

  @Test("The format version is 2 from the first segment on.")
  func formatVersion() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path, options: Self.options(from: 1))
    try Self.put(bytes("key"), [1, 2, 3], in: engine)
    let marker = try SystemFiles().read("\(directory.path)/LARDER", limit: 64)
    #expect(StoreMarker.formatVersion(in: marker) == 2)
    try engine.close()
  }

  @Test("Conditions are checked against separated values.")
  func conditions() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path, options: Self.options(from: 1))
    let key = bytes("key")
    try Self.put(key, [1, 2, 3], in: engine)
    let found = try #require(try engine.value(key))
    let since = try #require(sequence(of: found))
    func write(_ tail: UInt8, _ condition: WriteBatch.Condition) throws -> Bool {
      var batch = WriteBatch()
      let requirement = batch.require(key.span.bytes, condition)
      batch.putSeparable(key, stampedValue(1, tail: 0) + [tail], if: requirement)
      return try engine.write(&batch, synced: false).failed.isEmpty
    }
    #expect(try !write(4, .absent))
    #expect(try !write(4, .unchanged(since: since + 1, in: .test)))
    #expect(try !write(4, .damaged(.test)))
    try Self.expect([1, 2, 3], under: key, in: engine)
    #expect(try write(4, .unchanged(since: since, in: .test)))
    #expect(try write(5, .present))
    try Self.expect([5], under: key, in: engine)
    try engine.close()
  }

  @Test(
    "A changed, a zeroed, a cut and a missing segment damage only its own values.",
    arguments: 0..<4)
  func damage(kind: Int) throws {
    let directory = try TemporaryDirectory()
    let options = Self.options(from: 1, segmentBytes: 4 << 10)
    let tails = (0..<6).map { [UInt8](repeating: UInt8($0), count: 1500) }
    var engine = try LevelDBEngine(at: directory.path, options: options)
    for (number, tail) in tails.enumerated() {
      try Self.put(bytes("key \(number)"), tail, in: engine)
    }
    try engine.compact(EngineRange())
    try engine.close()
    let names = try Self.segments(of: directory)
    #expect(names.count == 3)
    let path = "\(directory.path)/\(names[1])"
    var contents = try SystemFiles().read(path, limit: nil)
    switch kind {
    case 0: contents[contents.count / 2] ^= 1
    case 1: contents = Array(repeating: 0, count: contents.count)
    case 2: contents = Array(contents.prefix(100))
    default: contents = []
    }
    if contents.isEmpty {
      try SystemFiles().remove(path)
    } else {
      try SystemFiles().replace(path, with: contents)
    }
    engine = try LevelDBEngine(at: directory.path, options: options)
    var damaged: [Int] = []
    for (number, tail) in tails.enumerated() {
      let key = bytes("key \(number)")
      let value = try #require(try engine.value(key))
      if isIntact(value, key: key) {
        #expect(Array(value[Stamp.test.end...]) == tail)
      } else {
        damaged.append(number)
        var batch = WriteBatch()
        let requirement = batch.require(key.span.bytes, .damaged(.test))
        batch.remove(key, if: requirement)
        #expect(try engine.write(&batch, synced: false).failed.isEmpty)
        #expect(try engine.value(key) == nil)
      }
    }
    #expect(damaged == [2, 3] || (kind == 0 && (damaged == [2] || damaged == [3])))
    #expect(try engine.entries().count == 6 - damaged.count)
    try engine.close()
  }

  @Test(
    "A segment of another store, or a copy of another segment, is never taken for the right one.")
  func confusedSegments() throws {
    let directory = try TemporaryDirectory()
    let other = try TemporaryDirectory()
    let options = Self.options(from: 1, segmentBytes: 4 << 10)
    for (path, mark) in [(directory.path, UInt8(0)), (other.path, 100)] {
      let engine = try LevelDBEngine(at: path, options: options)
      for number in 0..<4 {
        let tail = [UInt8](repeating: UInt8(number) + mark, count: 1500)
        try Self.put(bytes("key \(number)"), tail, in: engine)
      }
      try engine.compact(EngineRange())
      try engine.close()
    }
    let names = try Self.segments(of: directory)
    #expect(names.count == 2)
    let foreign = try SystemFiles().read("\(other.path)/\(names[0])", limit: nil)
    let first = try SystemFiles().read("\(directory.path)/\(names[0])", limit: nil)
    for replacement in [foreign, first] {
      try SystemFiles().replace("\(directory.path)/\(names[1])", with: replacement)
      if replacement == foreign {
        try SystemFiles().replace("\(directory.path)/\(names[0])", with: foreign)
      } else {
        try SystemFiles().replace("\(directory.path)/\(names[0])", with: first)
      }
      let engine = try LevelDBEngine(at: directory.path, options: options)
      let intact = try (0..<4).filter { number in
        let key = bytes("key \(number)")
        let value = try #require(try engine.value(key))
        guard isIntact(value, key: key) else { return false }
        #expect(value.last == UInt8(number))
        return true
      }
      #expect(intact == (replacement == foreign ? [] : [0, 1]))
      try engine.close()
    }
  }
}
