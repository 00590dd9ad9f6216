import Larder
import LarderTestSupport
import Testing

/// Every engine keeps the same contract for scans.
@Suite struct CursorTests {
  private func withLetters(
    _ kind: EngineKind, cursorSliceEntries: Int = 100_000,
    _ body: (any StorageEngine) throws -> Void
  ) throws {
    try withEngine(kind, cursorSliceEntries: cursorSliceEntries) { engine in
      for key in ["a", "b", "ba", "bb", "c", "d"] { try engine.put(key, "value of \(key)") }
      try body(engine)
    }
  }

  private let middle = EngineRange(from: bytes("b"), upTo: bytes("d"))

  @Test("A range is scanned in both directions.", arguments: EngineKind.allCases, [1, 2, 100_000])
  func bothDirections(kind: EngineKind, sliceEntries: Int) throws {
    try withLetters(kind, cursorSliceEntries: sliceEntries) { engine in
      let expected = ["b", "ba", "bb", "c"].map { Entry($0, "value of \($0)") }

      let forwards = try engine.entries(in: middle)
      let backwards = try engine.entriesBackwards(in: middle)
      #expect(forwards == expected)
      #expect(backwards == expected.reversed())
    }
  }

  @Test("A range can be a prefix, unbounded or empty.", arguments: EngineKind.allCases)
  func ranges(kind: EngineKind) throws {
    try withLetters(kind) { engine in
      try engine.put([0xFF, 0xFF, 1], [])
      func keys(_ range: EngineRange) throws -> [[UInt8]] {
        let keys = try engine.entries(in: range).map(\.key)
        #expect(try engine.entriesBackwards(in: range).map(\.key) == keys.reversed())
        return keys
      }

      #expect(try keys(EngineRange(prefix: bytes("b"))) == ["b", "ba", "bb"].map(bytes))
      #expect(try keys(EngineRange(prefix: [0xFF, 0xFF])) == [[0xFF, 0xFF, 1]])
      #expect(
        try keys(EngineRange(from: bytes("c"))) == [bytes("c"), bytes("d"), [0xFF, 0xFF, 1]])
      #expect(try keys(EngineRange(from: [1], upTo: bytes("b"))) == [bytes("a")])
      #expect(try keys(EngineRange(prefix: bytes("x"))) == [])
      #expect(try keys(EngineRange(from: bytes("d"), upTo: bytes("b"))) == [])
      #expect(try keys(EngineRange(from: bytes("b"), upTo: bytes("b"))) == [])
    }
  }

  @Test("The successor of a prefix is the least key above all of its keys.")
  func prefixSuccessor() {
    #expect(EngineRange.successor(ofPrefix: [1, 2]) == [1, 3])
    #expect(EngineRange.successor(ofPrefix: [1, 0xFF]) == [2])
    #expect(EngineRange.successor(ofPrefix: [0xFF, 0xFF]) == nil)
    #expect(EngineRange.successor(ofPrefix: []) == nil)
  }

  @Test(
    "A cursor can change direction at any key.", arguments: EngineKind.allCases, [1, 2, 100_000])
  func turns(kind: EngineKind, sliceEntries: Int) throws {
    try withLetters(kind, cursorSliceEntries: sliceEntries) { engine in
      let cursor = try engine.cursor(over: middle)

      #expect(try !cursor.previous())
      #expect(try cursor.next() && cursor.key == "b")
      #expect(try cursor.next() && cursor.key == "ba")
      #expect(try cursor.previous() && cursor.key == "b")
      #expect(try !cursor.previous())
      #expect(try cursor.next() && cursor.key == "b")
      for _ in 0..<3 { #expect(try cursor.next()) }
      #expect(cursor.key == "c")
      #expect(try !cursor.next())
      #expect(try !cursor.next())
      #expect(try cursor.previous() && cursor.key == "c")
    }
  }

  @Test(
    "A renewed cursor continues from its place in the current state.",
    arguments: EngineKind.allCases)
  func renewed(kind: EngineKind) throws {
    try withLetters(kind) { engine in
      let cursor = try engine.cursor(over: middle)
      // From the start, far enough to have read ahead, and from the end.
      try cursor.renew()
      for _ in 0..<2 { #expect(try cursor.next()) }
      #expect(cursor.key == "ba")
      try engine.remove("bb")
      try engine.remove("ba")
      try engine.put("bab", "new")
      try cursor.renew()
      #expect(try cursor.next() && cursor.key == "bab")
      #expect(try cursor.next() && cursor.key == "c")
      #expect(try !cursor.next())
      try engine.put("caa", "new")
      try cursor.renew()
      #expect(try !cursor.next())
      #expect(try cursor.previous() && cursor.key == "caa")
    }
  }

  @Test(
    "A seek positions the cursor between two keys of its range.", arguments: EngineKind.allCases,
    [1, 2, 100_000])
  func seeks(kind: EngineKind, sliceEntries: Int) throws {
    try withLetters(kind, cursorSliceEntries: sliceEntries) { engine in
      let cursor = try engine.cursor(over: middle)
      func around(_ key: String) throws -> [String?] {
        try cursor.seek(to: bytes(key).span.bytes)
        let after = try cursor.next() ? cursor.key : nil
        try cursor.seek(to: bytes(key).span.bytes)
        let before = try cursor.previous() ? cursor.key : nil
        return [before, after]
      }

      #expect(try around("") == [nil, "b"])
      #expect(try around("a") == [nil, "b"])
      #expect(try around("b") == [nil, "b"])
      #expect(try around("b0") == ["b", "ba"])
      #expect(try around("ba") == ["b", "ba"])
      #expect(try around("bz") == ["bb", "c"])
      #expect(try around("cz") == ["c", nil])
      #expect(try around("d") == ["c", nil])
      #expect(try around("z") == ["c", nil])

      try cursor.seekToEnd()
      #expect(try !cursor.next())
      try cursor.seekToEnd()
      #expect(try cursor.previous() && cursor.key == "c")
    }
  }

  @Test(
    "A cursor before the first key stays there when its slice ends.",
    arguments: EngineKind.allCases)
  func start(kind: EngineKind) throws {
    try withLetters(kind, cursorSliceEntries: 1) { engine in
      let cursor = try engine.cursor(over: middle)
      #expect(try cursor.next() && cursor.key == "b")
      #expect(try !cursor.previous())
      try engine.put("b\0", "new")
      try engine.remove("b")
      #expect(try !cursor.previous())
      #expect(try cursor.next() && cursor.key == "b\0")
      #expect(try !cursor.previous())
      try engine.put("b", "new")
      #expect(try !cursor.previous())
      #expect(try cursor.next() && cursor.key == "b")
    }
  }

  @Test("A cursor reads one state within a slice.", arguments: EngineKind.allCases)
  func slices(kind: EngineKind) throws {
    try withLetters(kind) { engine in
      let cursor = try engine.cursor(over: middle)
      #expect(try cursor.next())
      try engine.put("ba", "changed")
      try engine.put("bc", "new")
      try engine.remove("bb")
      try engine.compact(EngineRange())

      #expect(try cursor.next() && cursor.entry == Entry("ba", "value of ba"))
      #expect(try cursor.next() && cursor.entry == Entry("bb", "value of bb"))
      #expect(try cursor.next() && cursor.entry == Entry("c", "value of c"))
      #expect(try !cursor.next())
    }
  }

  @Test("A cursor continues in a newer state after each slice.", arguments: EngineKind.allCases)
  func newerState(kind: EngineKind) throws {
    try withEngine(kind, cursorSliceEntries: 10) { engine in
      for key in 100..<200 { try engine.put("\(key)", "old") }
      let cursor = try engine.cursor(over: EngineRange(from: [1]))
      for key in 100..<110 { #expect(try cursor.next() && cursor.key == "\(key)") }
      // Remove a visited key, the current one and the next one, and add one after the current key.
      for key in [105, 109, 110] { try engine.remove("\(key)") }
      for key in 111..<200 { try engine.put("\(key)", "new") }
      try engine.put("1095", "new")

      #expect(cursor.entry == Entry("109", "old"))
      #expect(try cursor.next() && cursor.entry == Entry("1095", "new"))
      for key in 111..<200 { #expect(try cursor.next() && cursor.entry == Entry("\(key)", "new")) }
      #expect(try !cursor.next())
      for key in (111..<200).reversed() { #expect(try cursor.previous() && cursor.key == "\(key)") }
      #expect(try cursor.previous() && cursor.key == "1095")
      #expect(try cursor.previous() && cursor.key == "108")
    }
  }

  @Test("A scan over many slices misses and repeats no key.", arguments: EngineKind.allCases)
  func manySlices(kind: EngineKind) throws {
    try withEngine(kind, cursorSliceEntries: 97) { engine in
      let keys = (10_000..<15_000).map { bytes("\($0)") }
      var batch = WriteBatch()
      for key in keys { batch.put(key, key) }
      try engine.write(&batch, synced: false)

      #expect(try engine.entries().map(\.key) == keys)
      #expect(try engine.entriesBackwards().map(\.key) == keys.reversed())
    }
  }

  @Test("Cursors of a closed engine throw `closed`.", arguments: EngineKind.allCases)
  func closedCursors(kind: EngineKind) throws {
    for order in 0..<6 {
      try withLetters(kind) { engine in
        // One cursor on an entry, a new one, and one at the end.
        var cursors: [(any EngineCursor)?] = try (0..<3).map { _ in
          try engine.cursor(over: middle)
        }
        #expect(try cursors[0]?.next() == true)
        while try cursors[2]?.next() == true {}
        if order >= 3 { cursors[order - 3] = nil }
        try engine.close()

        for turn in 0..<3 {
          let index = (turn + order) % 3
          guard let cursor = cursors[index] else { continue }
          #expect(throws: StoreError.closed) { try cursor.next() }
          #expect(throws: StoreError.closed) { try cursor.previous() }
          #expect(throws: StoreError.closed) { try cursor.seek(to: bytes("b").span.bytes) }
          #expect(throws: StoreError.closed) { try cursor.seekToEnd() }
          // The entry that was current before the close stays readable.
          if index == 0 { #expect(cursor.entry == Entry("b", "value of b")) }
          cursors[index] = nil
        }
      }
    }
  }

  @Test("A cursor keeps its engine open.", arguments: EngineKind.allCases)
  func engineLifetime(kind: EngineKind) throws {
    let directory = try TemporaryDirectory()
    var engine: (any StorageEngine)? =
      kind == .levelDB ? try LevelDBEngine(at: directory.path) : InMemoryEngine()
    try engine?.put("k", "v")
    let cursor = try engine?.cursor(over: EngineRange(from: [1]))
    engine = nil

    #expect(try cursor?.next() == true && cursor?.entry == Entry("k", "v"))
  }
}
