import Larder
import SimulatedDisk
import Testing

/// Replacing a damaged store with a new one is atomic.
@Suite(.timeLimit(.minutes(30))) struct ReplaceTests {
  private let disk = SimulatedDisk()
  private var files: SimulatedFiles { SimulatedFiles(disk) }

  /// Makes a directory with a marker and one file, all of it durable.
  private func makeStore(_ path: String, holding byte: UInt8) throws(StoreError) {
    try files.makeDirectory(path)
    try files.replace("\(path)/\(StoreMarker.fileName)", with: Array(StoreMarker.contents.utf8))
    try files.replace("\(path)/data", with: [byte])
    try files.synchronizeDirectory(path)
    try files.synchronizeDirectory("/")
  }

  @Test("After a power loss at any moment the path holds the old store or the new one.")
  func powerLoss() throws {
    try makeStore("/store", holding: 1)
    let before = disk.journalCount
    let aside = try LevelDBEngine.replace("/store", files: files) { old, new throws(StoreError) in
      #expect(old == "/store")
      try makeStore(new, holding: 2)
    }
    #expect(aside == "/store.damaged")
    #expect(disk.bytes(of: "/store/data") == [2])
    #expect(disk.bytes(of: "\(aside)/data") == [1])

    let models: [CrashModel] = [
      .everything, .nothingUnsynced, .unsyncedDataLost, .namesLost(keeping: 1), .prefix(seed: 1),
    ]
    let replay = disk.replay()
    var seen: Set<UInt8> = []
    repeat {
      guard replay.position >= before else { continue }
      for model in models {
        let image = replay.image(model)
        let byte = try #require(image.bytes(of: "/store/data")?.first)
        seen.insert(byte)
        // The old store is never lost.
        if byte == 2 { #expect(image.bytes(of: "\(aside)/data") == [1]) }
      }
    } while replay.step() != nil
    #expect(seen == [1, 2])
  }

  @Test("If the new store cannot be made, the old one stays in its place.")
  func failure() throws {
    try makeStore("/store", holding: 1)
    #expect(throws: StoreError.diskFull) {
      try LevelDBEngine.replace("/store", files: files) { _, _ throws(StoreError) in
        throw .diskFull
      }
    }
    #expect(disk.bytes(of: "/store/data") == [1])
    #expect(disk.names.allSatisfy { !$0.hasPrefix("/store.damaged") })
  }
}
