import Foundation
import LarderEngine
import LarderTestSupport
import SimulatedDisk
import Testing

@testable import Larder

/// A store on a disk that is full can be read, and cleared.
@Suite struct FullDiskTests {
  private let disk = SimulatedDisk()
  private let noise = {
    var random = SplitMix64(seed: 1)
    return random.bytes(10_000)
  }()

  private func open() throws -> (store: Store, pictures: Cache<Int, Data>, words: Cache<Int, Data>)
  {
    var options = LevelDBOptions()
    options.files = SimulatedFiles(disk)
    options.writeBufferBytes = 64 << 10
    options.maxFileBytes = 1 << 20
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

  /// Saves pictures until there is no room; returns how many there are then.
  private func fill(_ pictures: Cache<Int, Data>) throws -> Int {
    for number in 0..<10_000 {
      do {
        try pictures.save(picture(number), for: number)
      } catch .diskFull {
        return number
      }
    }
    Issue.record("the disk was never full")
    return 0
  }

  private func expect(_ count: Int, in pictures: Cache<Int, Data>) throws {
    for number in 0..<count { try #require(try pictures.value(for: number) == picture(number)) }
  }

  @Test(arguments: [4, 5, 6, 8, 11] as [UInt64])
  func itIsReadableAndClearingItMakesRoom(megabytes: UInt64) throws {
    disk.setCapacity(megabytes << 20)
    let (store, pictures, words) = try open()
    try words.save(Data("kept".utf8), for: 1)
    let count = try fill(pictures)
    #expect(count > 150)
    try expect(count, in: pictures)
    // A save does not get what is kept for removals.
    for _ in 0..<3 {
      #expect(throws: StoreError.self) { try pictures.save(picture(count), for: count) }
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

  @Test(arguments: [4, 5, 6, 8, 11] as [UInt64])
  func itCanBeOpenedAndCleared(megabytes: UInt64) throws {
    disk.setCapacity(megabytes << 20)
    let first = try open()
    let count = try fill(first.pictures)
    try first.store.close()
    // Others take what is left.
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

  @Test func thereIsNoReserveWhileThereIsRoom() throws {
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
