import Foundation
import LarderTestSupport
import SimulatedDisk
import Testing

@testable import Larder

/// A store on a full disk can be opened, read and cleared.
@Suite struct FullDiskTests {
  private let disk = SimulatedDisk()
  private let noise = {
    var random = SplitMix64(seed: 1)
    return random.bytes(10_000)
  }()

  private func open(
    byDefault: Bool = false, on other: SimulatedDisk? = nil
  ) throws -> (store: Store, pictures: Cache<Int, Data>, words: Cache<Int, Data>) {
    var options = LevelDBOptions()
    options.files = SimulatedFiles(other ?? disk)
    if !byDefault {
      options.writeBufferBytes = 64 << 10
      options.maxFileBytes = 1 << 20
    }
    let engine = try LevelDBEngine(at: "/store", options: options)
    let store = try Store(engine: engine, origin: .disk)
    return (
      store, try store.cache("pictures", of: Data.self, keyedBy: Int.self, coder: .bytes),
      try store.cache("words", of: Data.self, keyedBy: Int.self, coder: .bytes)
    )
  }

  private func picture(_ number: Int) -> Data {
    Data(noise[(number % 5000)...].prefix(5000))
  }

  /// Saves pictures from a number on until the disk is full; returns the number that failed.
  private func fill(
    _ pictures: Cache<Int, Data>, from first: Int = 0, durability: Durability? = nil
  ) throws -> Int {
    for number in first..<10_000 {
      do {
        try pictures.save(picture(number), for: number, durability: durability)
      } catch StoreError.diskFull {
        return number
      }
    }
    Issue.record("the disk was never full")
    return 0
  }

  private func isForLackOfRoom(_ error: any Error) -> Bool {
    switch error {
    case StoreError.diskFull, StoreError.writesDisabled: true
    default: false
    }
  }

  private func expect(_ count: Int, in pictures: Cache<Int, Data>) throws {
    for number in 0..<count { try #require(try pictures.value(for: number) == picture(number)) }
  }

  @Test(
    "A store that filled the disk is readable, and clearing it makes room.",
    arguments: [4, 5, 6, 8, 11] as [UInt64])
  func clearing(megabytes: UInt64) throws {
    disk.setCapacity(megabytes << 20)
    let (store, pictures, words) = try open()
    try words.save(Data("kept".utf8), for: 1)
    let count = try fill(pictures)
    #expect(count > 150)
    try expect(count, in: pictures)
    // A save may not use the reserve, which is kept for removals.
    for _ in 0..<3 {
      do {
        try pictures.save(picture(count), for: count)
        // A compaction has just made room for the save.
      } catch {
        guard isForLackOfRoom(error) else { throw error }
      }
    }
    #expect(disk.names.contains("/store/LARDER.reserve"))

    try pictures.removeAll()
    #expect(try pictures.value(for: 0) == nil)
    #expect(try words.value(for: 1) == Data("kept".utf8))
    for number in 0..<100 { try pictures.save(picture(number), for: number) }
    #expect(disk.names.contains("/store/LARDER.reserve"))
    try store.close()

    let again = try open()
    try expect(100, in: again.pictures)
    #expect(try again.words.value(for: 1) == Data("kept".utf8))
    try again.store.close()
  }

  @Test(
    "A store on a full disk can be opened and cleared.", arguments: [4, 5, 6, 8, 11] as [UInt64])
  func openAndClear(megabytes: UInt64) throws {
    disk.setCapacity(megabytes << 20)
    let first = try open()
    let count = try fill(first.pictures)
    try first.store.close()
    // Another file takes the rest of the disk.
    let rest = try SimulatedFiles(disk).availableBytes(in: "/store")
    disk.setBytes(Array(repeating: 1, count: Int(rest)), of: "/rest")

    let (store, pictures, _) = try open()
    try expect(count, in: pictures)
    try pictures.removeAll()
    #expect(try pictures.value(for: 0) == nil)
    try store.close()
    let again = try open()
    #expect(try again.pictures.value(for: 0) == nil)
    try again.store.close()
  }

  @Test(
    "A suspended store goes on, though the disk has filled up.", arguments: [4, 6, 11] as [UInt64])
  func suspension(megabytes: UInt64) throws {
    disk.setCapacity(megabytes << 20)
    let (store, pictures, _) = try open()
    let count = try fill(pictures)
    for _ in 0..<3 {
      try store.suspend()
      let rest = try SimulatedFiles(disk).availableBytes(in: "/store")
      disk.setBytes(Array(repeating: 1, count: Int(rest)), of: "/rest")
      try store.resume()
      try expect(count, in: pictures)
    }
    try pictures.removeAll()
    #expect(try pictures.value(for: 0) == nil)
    disk.setBytes([], of: "/rest")
    try pictures.save(picture(0), for: 0)
    try store.close()
  }

  /// LevelDB finds no room for the table of its full memory, so two logs are left.
  ///
  /// Opening writes them into tables.
  @Test(
    "A store is reopened with room of the reserve, and removals succeed.",
    arguments: [60, 100, 140, 180].map { $0 << 10 })
  func reopening(freeBytes: Int) throws {
    disk.setCapacity(8 << 20)
    let (store, pictures, words) = try open()
    try words.save(Data("kept".utf8), for: 1)
    for number in 0..<50 { try pictures.save(picture(number), for: number) }
    let available = Int(try SimulatedFiles(disk).availableBytes(in: "/store"))
    disk.setBytes(Array(repeating: 1, count: available - freeBytes), of: "/rest")
    let count = try fill(pictures, from: 50, durability: .powerLoss)
    try expect(count, in: pictures)

    try pictures.removeAll()

    #expect(try pictures.value(for: 0) == nil)
    #expect(try words.value(for: 1) == Data("kept".utf8))
    try store.close()
  }

  /// Others fill a large disk so fast that there is no reserve.
  ///
  /// LevelDB finds no room for the table of its full memory, so two logs are left.
  @Test(
    "A store without a reserve that has no room to be reopened stays readable.",
    arguments: (0..<16).map { $0 * 8 << 10 })
  func tooShort(freeBytes: Int) throws {
    let (store, pictures, words) = try open()
    try words.save(Data("kept".utf8), for: 1)
    var count = 50
    for number in 0..<count { try pictures.save(picture(number), for: number) }
    #expect(!disk.names.contains("/store/LARDER.reserve"))
    disk.setCapacity(64 << 20)
    let available = Int(try SimulatedFiles(disk).availableBytes(in: "/store"))
    disk.setBytes(Array(repeating: 1, count: available - freeBytes), of: "/rest")
    count = try fill(pictures, from: count, durability: .powerLoss)
    for _ in 0..<3 {
      do {
        _ = try pictures.remove(0)
      } catch {
        guard isForLackOfRoom(error) else { throw error }
      }
      for number in 1..<count { try #require(try pictures.value(for: number) == picture(number)) }
    }
    disk.setBytes([], of: "/rest")
    try pictures.removeAll()
    #expect(try pictures.value(for: 1) == nil)
    #expect(try words.value(for: 1) == Data("kept".utf8))
    try store.close()
  }

  @Test("A store that could not be reopened is, by a read, though the disk has filled up.")
  func readAfterFailedReopening() throws {
    var closed = 0
    for distance in 1...16 {
      let disk = SimulatedDisk()
      disk.setCapacity(8 << 20)
      let (store, pictures, _) = try open(on: disk)
      for number in 0..<50 { try pictures.save(picture(number), for: number) }
      let next = disk.counts.mutating + 1
      // A save fails, then the replacement of its log, and a call of the reopening.
      disk.fail(atCall: next, .shortWrite)
      disk.fail(atCall: next + 1, .eio)
      disk.fail(atCall: next + 1 + distance, .eio, forever: true)
      for number in 50..<54 {
        do { try pictures.save(picture(number), for: number) } catch is StoreError {}
      }
      do {
        _ = try pictures.value(for: 0)
      } catch is StoreError {
        closed += 1
      }
      try fillRest(of: disk)
      disk.heal()

      try expect(50, in: pictures)
      try pictures.removeAll()
      try store.close()
    }
    #expect(closed > 2)
  }

  @Test("A removal succeeds when it is the first write to find the disk full.")
  func remove() throws {
    disk.setCapacity(8 << 20)
    let (store, pictures, _) = try open()
    for number in 0..<200 { try pictures.save(picture(number), for: number) }
    let rest = try SimulatedFiles(disk).availableBytes(in: "/store")
    disk.setBytes(Array(repeating: 1, count: Int(rest)), of: "/rest")
    #expect(try pictures.remove(7))
    #expect(try pictures.value(for: 7) == nil)
    #expect(try pictures.value(for: 8) == picture(8))
    try store.close()
  }

  /// Fills the rest of the disk with another file.
  private func fillRest(of other: SimulatedDisk? = nil) throws {
    let disk = other ?? disk
    let rest = try SimulatedFiles(disk).availableBytes(in: "/store")
    let held = disk.bytes(of: "/rest")?.count ?? 0
    disk.setBytes(Array(repeating: 1, count: held + Int(rest)), of: "/rest")
  }

  /// Saves until that is refused; returns how many saves were accepted.
  private func saveUntilRefused(_ pictures: Cache<Int, Data>, from first: Int) throws -> Int {
    for number in first..<(first + 100_000) {
      do {
        try pictures.save(picture(number), for: number)
      } catch {
        guard isForLackOfRoom(error) else { throw error }
        return number - first
      }
    }
    Issue.record("the disk was never full")
    return 0
  }

  @Test("A cache of a full store can be opened with another lifetime, and cleared.")
  func settings() throws {
    disk.setCapacity(6 << 20)
    let first = try open()
    _ = try fill(first.pictures)
    try first.store.close()
    try fillRest()
    for days in 8...10 {
      var options = LevelDBOptions()
      options.files = SimulatedFiles(disk)
      let store = try Store(engine: LevelDBEngine(at: "/store", options: options), origin: .disk)
      let pictures = try store.cache(
        "pictures", of: Data.self, keyedBy: Int.self, lifetime: .days(days), coder: .bytes)
      #expect(try pictures.value(for: 0) == picture(0))
      if days == 10 { try pictures.removeAll() }
      try store.close()
    }
  }

  /// Clears both caches of a full store, and checks them after reopening: empty and writable.
  private func clear(
    _ store: Store, _ pictures: Cache<Int, Data>, _ words: Cache<Int, Data>,
    _ step: inout String
  ) throws {
    step = "clearing the pictures"
    try pictures.removeAll()
    step = "clearing the words"
    try words.removeAll()
    try store.close()
    step = "opening the cleared store"
    let again = try open(byDefault: true)
    #expect(try again.pictures.value(for: 0) == nil)
    #expect(try again.words.value(for: 1) == nil)
    disk.setBytes([], of: "/rest")
    step = "saving after clearing"
    for number in 0..<100 {
      do {
        try again.pictures.save(picture(number), for: number)
      } catch {
        guard isForLackOfRoom(error) else { throw error }
        try saveAfterCompaction(number, again.pictures, again.store)
      }
    }
    try expect(100, in: again.pictures)
    try again.store.close()
  }

  /// Saves a picture once there is no compaction under way: until then its tables may take the room
  /// that clearing has freed.
  private func saveAfterCompaction(
    _ number: Int, _ pictures: Cache<Int, Data>, _ store: Store
  ) throws {
    do {
      try store.context.engine.compact(EngineRange())
    } catch {
      // A compaction has failed. The next save deletes its tables.
    }
    try pictures.save(picture(number), for: number)
  }

  private static let megabytes: [UInt64] =
    isProof ? [3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 100] : [3, 4, 6, 8, 12, 24]

  @Test(
    "A store that fills its disk can be read and changed after each opening, and cleared.",
    arguments: megabytes)
  func reopenings(megabytes: UInt64) throws {
    disk.setCapacity(megabytes << 20)
    var step = "opening"
    do {
      var (store, pictures, words) = try open(byDefault: true)
      try words.save(Data("kept".utf8), for: 1)
      step = "filling"
      let count = try saveUntilRefused(pictures, from: 0)
      #expect(count >= Int(megabytes) * 40)
      for opening in 1...4 {
        try store.close()
        step = "opening \(opening)"
        (store, pictures, words) = try open(byDefault: true)
        step = "reading after opening \(opening)"
        try expect(count - opening + 1, in: pictures)
        step = "filling after opening \(opening)"
        _ = try saveUntilRefused(pictures, from: 1_000_000)
        step = "removing after opening \(opening)"
        #expect(try pictures.remove(count - opening))
        #expect(try pictures.value(for: count - opening) == nil)
      }
      try clear(store, pictures, words, &step)
    } catch {
      Issue.record(error, "\(step)")
    }
  }

  @Test(
    "A store can be read and cleared although other files filled the disk before each opening.",
    arguments: megabytes)
  func filledByOthers(megabytes: UInt64) throws {
    disk.setCapacity(megabytes << 20)
    var step = "opening"
    do {
      var (store, pictures, words) = try open(byDefault: true)
      try words.save(Data("kept".utf8), for: 1)
      let count = Int(megabytes) * 40
      step = "saving"
      for number in 0..<count { try pictures.save(picture(number), for: number) }
      for opening in 1...4 {
        try store.close()
        try fillRest()
        step = "opening \(opening)"
        (store, pictures, words) = try open(byDefault: true)
        step = "reading after opening \(opening)"
        try expect(count, in: pictures)
        step = "filling after opening \(opening)"
        _ = try saveUntilRefused(pictures, from: 1_000_000)
        #expect(try words.value(for: 1) == Data("kept".utf8), "opening \(opening)")
      }
      step = "removing"
      #expect(try pictures.remove(0))
      #expect(try pictures.value(for: 0) == nil)
      try clear(store, pictures, words, &step)
    } catch {
      Issue.record(error, "\(step)")
    }
  }

  /// The compactions of these small disks begin with the opening and fail for lack of room.
  @Test(
    "A removal is written although compactions take all room first.",
    arguments: [3, 4, 6, 8] as [UInt64])
  func compactionsFirst(megabytes: UInt64) throws {
    disk.setCapacity(megabytes << 20)
    var (store, pictures, _) = try open(byDefault: true)
    let count = Int(megabytes) * 40
    for number in 0..<count { try pictures.save(picture(number), for: number) }
    for opening in 1...4 {
      try store.close()
      try fillRest()
      (store, pictures, _) = try open(byDefault: true)
      _ = try saveUntilRefused(pictures, from: 1_000_000)
      disk.preferBackground()
      #expect(try pictures.remove(opening))
      disk.releaseBackground()
      #expect(try pictures.value(for: opening) == nil)
    }
    try store.close()
  }

  @Test("A save succeeds after a compaction has failed for lack of room.")
  func failedCompaction() throws {
    disk.setCapacity(32 << 20)
    let (store, pictures, _) = try open(byDefault: true)
    for number in 0..<1600 { try pictures.save(picture(number), for: number) }
    let rest = try SimulatedFiles(disk).availableBytes(in: "/store")
    disk.setBytes(Array(repeating: 1, count: Int(rest) - (3 << 20)), of: "/rest")
    #expect(throws: StoreError.self) {
      try store.context.engine.compact(EngineRange())
    }
    #expect(try SimulatedFiles(disk).availableBytes(in: "/store") < 64 << 10)
    for number in 1600..<1610 { try pictures.save(picture(number), for: number) }
    try expect(1610, in: pictures)
    try store.close()
  }

  @Test("The reserve file exists only while room is short.")
  func reserve() throws {
    let (store, pictures, _) = try open()
    for number in 0..<300 { try pictures.save(picture(number), for: number) }
    #expect(!disk.names.contains("/store/LARDER.reserve"))
    disk.setCapacity(100 << 20)
    for number in 300..<600 { try pictures.save(picture(number), for: number) }
    #expect(disk.names.contains("/store/LARDER.reserve"))
    disk.setCapacity(1 << 40)
    for number in 600..<900 { try pictures.save(picture(number), for: number) }
    #expect(!disk.names.contains("/store/LARDER.reserve"))
    try expect(900, in: pictures)
    try store.close()
  }
}

/// A store on a full volume of the system can be opened, read and cleared.
///
/// These tests run in `make proof`. LevelDB has one thread for the compactions of all databases in
/// a process. If other tests keep it busy, a store may be closed before its reserve is restored; a
/// volume that is filled by others at that moment then has no room to open it.
@Suite struct FullVolumeTests {
  @Test(
    "A full store on a tmpfs volume can be read and cleared after each opening.",
    .enabled("part of the proof; needs the right to mount volumes") {
      isProof && SmallVolume.isAllowed(.tmpfs)
    },
    arguments: [6, 12, 64])
  func onTmpfs(megabytes: Int) throws { try fillAndClear(.tmpfs, megabytes) }

  @Test(
    "A full store on an ext4 volume can be read and cleared after each opening.",
    .enabled("part of the proof; needs the right to mount volumes") {
      isProof && SmallVolume.isAllowed(.ext4)
    },
    arguments: [6, 12, 64])
  func onExt4(megabytes: Int) throws { try fillAndClear(.ext4, megabytes) }

  private func fillAndClear(_ kind: SmallVolume.Kind, _ megabytes: Int) throws {
    var step = ""
    do {
      try fillAndClear(kind, megabytes, &step)
    } catch {
      Issue.record(error, "\(step)")
    }
  }

  private func fillAndClear(
    _ kind: SmallVolume.Kind, _ megabytes: Int, _ step: inout String
  ) throws {
    let volume = try SmallVolume(kind, megabytes: megabytes)
    let directory = volume.directory.appending(path: "store")
    var random = SplitMix64(seed: 1)
    let noise = Data(random.bytes(5000))
    var count = 0
    for opening in 0..<4 {
      step = "opening \(opening)"
      let store = try Store(at: directory)
      step = "opening \(opening), the cache"
      let cache = try store.cache("pictures", of: Data.self, keyedBy: Int.self, coder: .bytes)
      step = "opening \(opening), reading \(count)"
      for number in 0..<count { try #require(try cache.value(for: number) == noise) }
      if opening > 0 {
        step = "opening \(opening), removing"
        count -= 1
        #expect(try cache.remove(count))
      }
      if opening < 3 {
        step = "opening \(opening), saving"
        count += try saveUntilFull(cache, noise, from: count)
      } else {
        step = "opening \(opening), clearing"
        try cache.removeAll()
        #expect(try cache.value(for: 0) == nil)
      }
      try store.close()
      if opening == 1 { try volume.fill() }
    }
    #expect(count > megabytes * 40)
    step = "the last opening"
    let store = try Store(at: directory)
    let cache = try store.cache("pictures", of: Data.self, keyedBy: Int.self, coder: .bytes)
    #expect(try cache.value(for: 0) == nil)
    try store.close()
  }

  private func saveUntilFull(
    _ cache: Cache<Int, Data>, _ value: Data, from first: Int
  ) throws -> Int {
    for number in first..<(first + 100_000) {
      do {
        try cache.save(value, for: number)
      } catch StoreError.diskFull, StoreError.writesDisabled {
        // It is unknown whether this save took effect.
        return number - first
      }
    }
    Issue.record("the volume was never full")
    return 0
  }
}
