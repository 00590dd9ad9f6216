import Crypto
import Foundation
import LarderShared
import LarderTestSupport
import Testing

@testable import Larder
@testable import LarderTesting

/// Sealed stores, and what else a store does: copies, damage, scans of everything.
@Suite(.timeLimit(.minutes(5))) struct SealSeamTests {
  static let encryption = Encryption.key(id: "1", key(1))

  private func fill(_ store: Store, _ range: Range<Int> = 0..<100) throws {
    let cache = try store.cache("c", of: String.self, keyedBy: Int.self)
    for key in range {
      try cache.save(Self.text(key), for: key, validator: Validator("\(key)" + marker))
    }
  }

  /// Every third value is in a segment.
  private static func text(_ key: Int) -> String {
    "\(key) " + String(repeating: marker, count: key % 3 == 0 ? 300 : 1)
  }

  private func check(_ store: Store, _ range: Range<Int> = 0..<100) throws {
    let cache = try store.cache("c", of: String.self, keyedBy: Int.self)
    for key in range {
      let entry = try #require(try cache.lookup(for: key).entry)
      #expect(entry.value == Self.text(key) && entry.validator == Validator("\(key)" + marker))
    }
  }

  // MARK: - Sealing everything again

  @Test("What was saved before the store had a key is sealed, and its bytes leave the files.")
  func reseal() async throws {
    let sealed = try SealedStore()
    try sealed.with(nil) { try fill($0) }
    let store = try sealed.open(Self.encryption)
    try fill(store, 100..<120)
    let report = try store.reseal()
    #expect(report.sealed == 100 && report.current == 20 && report.isComplete)
    try check(store, 0..<120)
    try await store.compact()
    try store.close()
    #expect(try sealed.filesWithMarker() == [])
    try sealed.with { store in
      try check(store, 0..<120)
      // It is complete, so a new data key begins.
      let report = try store.reseal()
      #expect(report.sealed == 120 && report.current == 0)
      try check(store, 0..<120)
    }
  }

  @Test("Sealing again keeps dates, tags, own lifetimes and what is in memory.")
  func resealKeeps() throws {
    let sealed = try SealedStore()
    try sealed.with { store in
      let cache = try store.cache("c", of: String.self)
      try cache.save(marker, for: "a", lifetime: .hours(3), validator: "v", tags: ["t"])
      let before = try #require(try cache.lookup(for: "a").entry)
      sealed.clock.advance(by: .seconds(3600))
      #expect(try store.reseal().sealed == 1)
      let after = try #require(try cache.lookup(for: "a").entry)
      #expect(after.savedAt == before.savedAt && after.tags == ["t"] && after.validator == "v")
      sealed.clock.advance(by: .seconds(3 * 3600))
      #expect(try cache.value(for: "a") == nil)
    }
  }

  @Test("An entry that is not sealed is read until everything is, and then is an error.")
  func unsealedEntry() throws {
    let sealed = try SealedStore()
    var plain: [UInt8] = []
    try sealed.with(nil) { store in
      let cache = try store.cache("c", of: String.self)
      try cache.save("plain", for: "a")
      plain = try #require(
        try store.engine.get("a".recordKey(in: cache.core.id).bytes.span.bytes))
    }
    let store = try sealed.open(Self.encryption)
    let cache = try store.cache("c", of: String.self, memory: .none)
    #expect(try cache.value(for: "a") == "plain")
    #expect(try store.reseal().isComplete)
    #expect(try cache.value(for: "a") == "plain")
    var rows = WriteBatch()
    rows.put("a".recordKey(in: cache.core.id).bytes.span.bytes, plain.span.bytes)
    try store.engine.write(&rows, synced: false)
    #expect(throws: StoreError.self) { try cache.value(for: "a") }
    try store.close()
  }

  @Test("Threads that save, touch and read are not disturbed by sealing everything.")
  func concurrent() throws {
    let sealed = try SealedStore()
    try sealed.with(nil) { try fill($0) }
    let store = try sealed.open(Self.encryption)
    let cache = try store.cache("c", of: String.self, keyedBy: Int.self)
    onThreads(4) { thread in
      do {
        if thread == 0 {
          for _ in 0..<5 { try store.reseal() }
        } else {
          for key in 0..<100 where key % 3 == thread - 1 {
            try cache.save(Self.text(key), for: key, validator: Validator("\(key)" + marker))
            #expect(try cache.value(for: key) == Self.text(key))
            try cache.touch(key)
          }
        }
      } catch {
        Issue.record(error)
      }
    }
    #expect(try store.reseal().isComplete)
    try check(store)
    try store.close()
    try sealed.with { try check($0) }
  }

  // MARK: - Copies

  @Test("A backup is sealed, and a store is restored from it with the key.")
  func backup() throws {
    let sealed = try SealedStore()
    let backup = URL(filePath: sealed.directory.path("backup"))
    try sealed.with { store in
      try fill(store)
      try store.backup(to: backup)
    }
    #expect(try sealed.filesWithMarker() == [])
    try FileManager.default.removeItem(atPath: sealed.path)
    try Store.restore(from: backup, to: URL(filePath: sealed.path))
    #expect(try sealed.error(opening: nil)?.isWrongKey == true)
    try sealed.with { try check($0) }
  }

  @Test(
    "Salvage copies sealed entries and the data keys, also from the file.",
    arguments: [true, false])
  func salvage(hasRows: Bool) throws {
    let sealed = try SealedStore()
    try sealed.with { store in
      try fill(store)
      if !hasRows { try removeDataKeys(of: store) }
    }
    let new = sealed.directory.path("new")
    let report = try Store.salvage(
      from: URL(filePath: sealed.path), to: URL(filePath: new))
    #expect(report.entries["c"] == 100)
    #expect(try sealed.filesWithMarker() == [])
    try FileManager.default.removeItem(atPath: sealed.path)
    try FileManager.default.moveItem(atPath: new, toPath: sealed.path)
    #expect(try sealed.error(opening: nil)?.isWrongKey == true)
    try sealed.with { try check($0) }
  }

  // MARK: - Damage

  private func removeDataKeys(of store: Store) throws {
    var rows = WriteBatch()
    rows.remove(Metadata.dataKey(1).span.bytes)
    try store.engine.write(&rows, synced: true)
  }

  @Test("Lost rows of data keys are read from the file, and written again.")
  func lostRows() throws {
    let sealed = try SealedStore()
    try sealed.with { store in
      try fill(store)
      try removeDataKeys(of: store)
    }
    #expect(try sealed.error(opening: nil)?.isWrongKey == true)
    #expect(try sealed.error(opening: .key(id: "1", key(2)))?.isWrongKey == true)
    try sealed.with { try check($0) }
    try FileManager.default.removeItem(atPath: "\(sealed.path)/LARDER.keys")
    try sealed.with { try check($0) }
    #expect(FileManager.default.fileExists(atPath: "\(sealed.path)/LARDER.keys"))
  }

  @Test("On a full disk, a store opens although the copy of its data keys is missing.")
  func lostFileOnFullDisk() throws {
    let sealed = try SealedStore()
    try sealed.with { try fill($0) }
    let file = "\(sealed.path)/LARDER.keys"
    try FileManager.default.removeItem(atPath: file)
    var options = Store.Options()
    (options.clock, options.encryption) = (sealed.clock, Self.encryption)
    options.sweepInterval = nil
    let faults = StoreFaults()
    let engine = FaultyEngine(
      try LevelDBEngine(at: sealed.path, options: options.engineOptions), faults)
    faults.isDiskFull = true
    let store = try Store(engine: engine, options: options, origin: .disk)
    try check(store)
    #expect(!FileManager.default.fileExists(atPath: file))
    faults.isDiskFull = false
    try fill(store, 100..<110)
    try store.close()
    try sealed.with { try check($0, 0..<110) }
    #expect(FileManager.default.fileExists(atPath: file))
  }

  @Test("A damaged file of data keys is written again, and a damaged row is read from the file.")
  func damage() throws {
    let sealed = try SealedStore()
    try sealed.with { try fill($0) }
    let file = "\(sealed.path)/LARDER.keys"
    let whole = try Data(contentsOf: URL(filePath: file))
    for index in whole.indices {
      var damaged = whole
      damaged[index] ^= 1
      try damaged.write(to: URL(filePath: file))
      #expect(try sealed.error(opening: Self.encryption) == nil)
      #expect(try Data(contentsOf: URL(filePath: file)) == whole, "byte \(index)")
    }
    try sealed.with { store in
      let key = Metadata.dataKey(1)
      var row = try #require(try store.engine.get(key.span.bytes))
      row[10] ^= 1
      var rows = WriteBatch()
      rows.put(key.span.bytes, row.span.bytes)
      try store.engine.write(&rows, synced: true)
    }
    try sealed.with { try check($0) }
  }

  @Test("A store without any data key is damaged, with a key or without, and gets no new one.")
  func lostKeys() throws {
    let sealed = try SealedStore()
    try sealed.with { store in
      try fill(store)
      try removeDataKeys(of: store)
    }
    try FileManager.default.removeItem(atPath: "\(sealed.path)/LARDER.keys")
    for encryption in [nil, Self.encryption] {
      guard case .corrupt? = try sealed.error(opening: encryption) else {
        Issue.record("it opens, or with another error")
        continue
      }
    }
    #expect(!FileManager.default.fileExists(atPath: "\(sealed.path)/LARDER.keys"))
  }

  // MARK: - Other parts of a store

  @Test("Salvage leaves out sealed entries whose data keys are lost, and says so.")
  func salvageWithoutKeys() throws {
    let sealed = try SealedStore()
    try sealed.with(nil) { try fill($0, 0..<10) }
    try sealed.with { store in
      try fill(store, 10..<30)
      try removeDataKeys(of: store)
    }
    try FileManager.default.removeItem(atPath: "\(sealed.path)/LARDER.keys")
    let new = sealed.directory.path("new")
    let report = try Store.salvage(from: URL(filePath: sealed.path), to: URL(filePath: new))
    #expect(report.entries["c"] == 10 && report.losses.count == 20)
    try FileManager.default.removeItem(atPath: sealed.path)
    try FileManager.default.moveItem(atPath: new, toPath: sealed.path)
    try sealed.with(nil) { try check($0, 0..<10) }
  }

  @Test("A sealed cache is not shared.")
  func shared() throws {
    let sealed = try SealedStore()
    try sealed.with { store in
      let cache = try store.cache("c", of: String.self)
      let tier = try SharedTier(InMemoryServer(clock: sealed.clock), namespace: "n")
      #expect(throws: StoreError.self) { _ = try SharedCache(cache, in: tier) }
    }
  }

  @Test("Validation keeps sealed entries, and deletes one that cannot be opened.")
  func validation() throws {
    let sealed = try SealedStore()
    try sealed.with { store in
      try fill(store)
      let cache = try store.cache("c", of: String.self, keyedBy: Int.self)
      let bytes = try #require(
        try store.engine.get(1.recordKey(in: cache.core.id).bytes.span.bytes))
      var rows = WriteBatch()
      rows.putSeparable(
        2.recordKey(in: cache.core.id).bytes.span.bytes, stamp: Record.stamp
      ) { buffer in
        buffer.append(bytes.span.bytes)
        return 0
      }
      try store.engine.write(&rows, synced: false)
      let report = try cache.validate()
      #expect(report.kept == 99 && report.unreadable == 1)
    }
  }

  @Test("Entries that grow when they are sealed stay within a budget, and the newest ones stay.")
  func budget() throws {
    let sealed = try SealedStore()
    func cache(_ store: Store) throws -> Cache<Int, String> {
      try store.cache("c", of: String.self, keyedBy: Int.self, byteBudget: 20_000, memory: .none)
    }
    try sealed.with(nil) { store in
      let cache = try cache(store)
      for key in 0..<400 {
        sealed.clock.advance(by: .seconds(1))
        try cache.save("\(key) \(marker)", for: key)
      }
    }
    try sealed.with { store in
      let cache = try cache(store)
      let before = try keys(of: cache)
      let report = try store.reseal()
      let after = try keys(of: cache)
      #expect(report.isComplete && after.count < before.count)
      #expect(after == before.suffix(after.count))
      for key in after { #expect(try cache.value(for: key) == "\(key) \(marker)") }
      #expect(try #require(try store.contents()["c"]).fresh.bytes <= 20_000)
    }
  }

  private func keys(of cache: Cache<Int, String>) throws -> [Int] {
    let cursor = try cache.keys()
    var keys: [Int] = []
    while let key = try cursor.next() { keys.append(key) }
    return keys
  }

  @Test("Observers get no change when entries are sealed again, and open the values of changes.")
  func observers() async throws {
    let sealed = try SealedStore()
    try sealed.with(nil) { try fill($0, 0..<10) }
    let store = try sealed.open(Self.encryption)
    let cache = try store.cache("c", of: String.self, keyedBy: Int.self)
    let changes = cache.changes()
    #expect(try store.reseal().sealed == 10)
    try cache.save("new " + marker, for: 3, validator: "v")
    // The data key that seals the change is deleted before it is read.
    #expect(try store.reseal().isComplete)
    try store.close()
    var found: [String] = []
    for await change in changes {
      guard case .set(let entry) = change.kind else {
        Issue.record("\(change)")
        continue
      }
      found.append("\(change.key ?? -1) \(entry.value)")
    }
    #expect(found == ["3 new " + marker])
  }

  @Test("A store goes on after a suspension, unless its key was replaced meanwhile.")
  func suspension() throws {
    let sealed = try SealedStore()
    let store = try sealed.open(Self.encryption)
    try fill(store)
    try store.suspend()
    try store.resume()
    try check(store)
    #expect(try store.reseal().isComplete)
    try store.suspend()
    #expect(throws: StoreError.self) { try store.reseal() }
    let both = Encryption.key(id: "2", key(2), replacing: ["1": key(1)])
    try sealed.with(both) { other in
      try check(other)
      #expect(try other.reseal().isComplete)
    }
    #expect { try store.resume() } throws: { error in
      if case StoreError.changedMeanwhile = error { true } else { false }
    }
    try store.close()
    try sealed.with(.key(id: "2", key(2))) { try check($0) }
  }

  @Test("A reader that has both keys opens the store before and after a key is replaced.")
  func reader() throws {
    let sealed = try SealedStore()
    try sealed.with { try fill($0) }
    let both = Encryption.key(id: "2", key(2), replacing: ["1": key(1)])
    let reader = try sealed.open(both, access: .readOnly)
    try check(reader)
    try reader.close()
    // It has changed nothing.
    #expect(try sealed.error(opening: .key(id: "2", key(2)))?.isWrongKey == true)
    try sealed.with(both) { try check($0) }
    let later = try sealed.open(both, access: .readOnly)
    try check(later)
    try later.close()
    #expect(try sealed.error(opening: Self.encryption, access: .readOnly)?.isWrongKey == true)
  }

  @Test("Imported entries are sealed.")
  func imported() throws {
    let sealed = try SealedStore()
    try sealed.with { store in
      let cache = try store.cache("c", of: String.self, keyedBy: Int.self)
      try store.importing { importer in
        for key in 0..<50 {
          try importer.save(
            Self.text(key), for: key, in: cache, savedAt: sealed.clock.now(),
            validator: Validator("\(key)" + marker))
        }
      }
      try check(store, 0..<50)
    }
    #expect(try sealed.filesWithMarker() == [])
    try sealed.with { try check($0, 0..<50) }
  }

  @Test("A cleared cache's values are gone from a store that is sealed and compacted.")
  func cleared() async throws {
    let sealed = try SealedStore()
    try sealed.with(nil) { store in
      try fill(store)
      try store.cache("c", of: String.self, keyedBy: Int.self).removeAll()
      try store.cache("d", of: String.self).save("d", for: "d")
    }
    let store = try sealed.open(Self.encryption)
    #expect(try store.reseal().isComplete)
    try await store.compact()
    try store.close()
    #expect(try sealed.filesWithMarker() == [])
  }

  @Test("The largest value and validator are sealed.", arguments: [false, true])
  func largest(isCompressed: Bool) throws {
    let sealed = try SealedStore()
    var encryption = Self.encryption
    encryption.compressesValues = isCompressed
    let validator = Validator([UInt8](repeating: 5, count: 4096))
    let value = Data(repeating: 7, count: 32 << 20)
    for _ in 0..<2 {
      try sealed.with(encryption) { store in
        let cache = try store.cache("c", of: Data.self, coder: .bytes, memory: .none)
        if try cache.value(for: "a") == nil {
          try cache.save(value, for: "a", validator: validator)
        }
        let entry = try #require(try cache.lookup(for: "a").entry)
        #expect(entry.value == value && entry.validator == validator)
        #expect(throws: StoreError.self) { try cache.save(value + [1], for: "b") }
        #expect(try store.reseal().isComplete)
        try cache.touch("a")
        #expect(try cache.value(for: "a") == value)
      }
    }
  }
}
