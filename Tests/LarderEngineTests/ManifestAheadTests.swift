import Larder
import SimulatedDisk
import Testing

/// Recovery sets aside a MANIFEST's last edit only if a power loss explains its missing files.
///
/// A power loss can keep the edit and lose its files' names. Any other missing file is damage.
@Suite struct ManifestAheadTests {
  private static let keys = (0..<40).map { "key\($0 + 10)" }

  /// A disk whose tables were written and merged; from `mark` on, the same keys are durable.
  private static func history() throws -> (disk: SimulatedDisk, mark: Int) {
    let disk = SimulatedDisk()
    let engine = try PowerLossHistory.open(disk)
    for key in keys {
      try engine.put(bytes(key), stampedValue(UInt8(key.utf8.count), tail: 3000), stamped: true)
    }
    try engine.flush()
    let mark = disk.journalCount
    for index in 0..<3 {
      try engine.compact(EngineRange())
      for key in [keys[0], keys[20 + index], keys[39]] {
        try engine.put(bytes(key), stampedValue(UInt8(index), tail: 30), stamped: true)
      }
      try engine.flush()
    }
    try engine.compact(EngineRange())
    try engine.close()
    return (disk, mark)
  }

  /// The MANIFEST of a disk, with its contents now and before its last edit.
  private struct Edited {
    let path: String
    let bytes: [UInt8]
    let now: Manifest
    let before: Manifest

    init?(_ disk: SimulatedDisk) {
      guard let current = disk.bytes(of: "/store/CURRENT") else { return nil }
      path = "/store/" + String(decoding: current.dropLast(), as: UTF8.self)
      guard let bytes = disk.bytes(of: path), let now = Manifest(bytes),
        let before = Manifest(Array(bytes[..<now.lastEdit]))
      else { return nil }
      (self.bytes, self.now, self.before) = (bytes, now, before)
    }

    /// A table that the last edit added.
    var newTable: UInt64? { now.tables.keys.first { before.tables[$0] == nil } }
    /// A table that the last edit removed.
    var oldTable: UInt64? { before.tables.keys.first { now.tables[$0] == nil } }
  }

  private static func path(ofTable number: UInt64) -> String {
    "/store/" + LogSurvey.name(of: number).dropLast(3) + "ldb"
  }

  private static func names(_ disk: SimulatedDisk) -> Set<String> {
    Set(disk.names.map { String($0.dropFirst("/store/".count)) })
  }

  private func expectAllKeys(_ disk: SimulatedDisk) throws {
    let engine = try PowerLossHistory.open(disk)
    let entries = try engine.entries()
    #expect(entries.map { String(decoding: $0.key, as: UTF8.self) } == Self.keys)
    #expect(entries.allSatisfy { isIntact($0.value, key: $0.key) })
    try engine.close()
  }

  /// Expects that recovery reports a missing file and changes nothing.
  private func expectRefusal(_ disk: SimulatedDisk) throws {
    let hash = disk.hash
    do throws(StoreError) {
      _ = try recover(directory: "/store", files: SimulatedFiles(disk), stamp: .test)
      Issue.record("recovery succeeded: \(disk.names)")
    } catch {
      guard case .corrupt(_, _, let message?) = error else { throw error }
      #expect(message.hasSuffix(" is missing"))
    }
    #expect(disk.hash == hash)
  }

  @Test("A last edit whose file names were lost is set aside.")
  func lostNames() throws {
    let (disk, mark) = try Self.history()
    let replay = disk.replay()
    var count = 0
    while replay.step() != nil {
      guard replay.position > mark else { continue }
      for kept in 0..<replay.pendingNames {
        let image = replay.image(.namesLost(keeping: kept))
        guard let edited = Edited(image), edited.now.missingFile(in: Self.names(image)) != nil
        else { continue }
        count += 1
        let files = SimulatedFiles(image)

        let recovery = try #require(try recover(directory: "/store", files: files, stamp: .test))

        let place = edited.now.lastEdit
        let name = edited.path.dropFirst("/store/".count)
        #expect(recovery.summary.contains("\(name) from byte \(place) on"))
        #expect(image.bytes(of: edited.path) == Array(edited.bytes[..<place]))
        #expect(image.bytes(of: "/store/LARDER.aside/\(name)") == Array(edited.bytes[place...]))
        #expect(try recover(directory: "/store", files: files, stamp: .test) == nil)
        try expectAllKeys(image)
      }
    }
    #expect(count > 0)
  }

  @Test("A missing table is damage unless every table before its edit exists.")
  func missingTable() throws {
    let (disk, mark) = try Self.history()
    let replay = disk.replay()
    var (exact, refused) = (0, 0)
    while replay.step() != nil {
      guard replay.position > mark else { continue }
      let image = replay.image(.everything)
      guard let edited = Edited(image), let table = edited.newTable else { continue }
      try SimulatedFiles(image).remove(Self.path(ofTable: table))
      guard edited.before.missingFile(in: Self.names(image)) == nil else {
        refused += 1
        try expectRefusal(image)
        continue
      }
      exact += 1
      // If an older table is missing or cut in half, there is no earlier state to restore.
      if let old = edited.oldTable {
        let path = Self.path(ofTable: old)
        let half = image.copy()
        half.edit(path) { $0.removeLast($0.count / 2) }
        try expectRefusal(half)
        let without = image.copy()
        try SimulatedFiles(without).remove(path)
        try expectRefusal(without)
      }
      #expect(try recover(directory: "/store", files: SimulatedFiles(image), stamp: .test) != nil)
      try expectAllKeys(image)
    }
    #expect(exact > 0 && refused > 0)
  }

  @Test("At most one complete edit is undone.")
  func oneEdit() throws {
    let (disk, mark) = try Self.history()
    let replay = disk.replay()
    var (torn, older) = (0, 0)
    while replay.step() != nil {
      guard replay.position > mark else { continue }
      let image = replay.image(.everything)
      guard let edited = Edited(image) else { continue }
      if let table = edited.newTable {
        // The torn record is the last edit, so the edit before it was synced.
        torn += 1
        let copy = image.copy()
        copy.edit(edited.path) { $0 += [1, 2, 3] }
        try SimulatedFiles(copy).remove(Self.path(ofTable: table))
        try expectRefusal(copy)
      }
      let kept = edited.now.tables.keys.first { edited.before.tables[$0] != nil }
      if let kept {
        older += 1
        try SimulatedFiles(image).remove(Self.path(ofTable: kept))
        try expectRefusal(image)
      }
    }
    #expect(torn > 0 && older > 0)
  }
}
