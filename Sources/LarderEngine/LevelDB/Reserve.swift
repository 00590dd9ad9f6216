/// Room that is kept on a disk that is nearly full, for writes that free room.
///
/// On a full disk nothing can be removed: a removal is written before anything is given back. So
/// while the disk is nearly full, a file holds room for what a removal takes: what is in LevelDB's
/// memory goes into tables, and a range is compacted. It is deleted when a batch that frees room
/// finds none; from then on only such batches are written, until there is room for the file again.
struct Reserve {
  static let name = "LARDER.reserve"
  /// A disk with less than this is nearly full.
  private static let tightBytes: UInt64 = 256 << 20

  private let directory: String
  private let files: any StoreFiles
  private let byteCount: Int
  /// The disk is looked at whenever so much was written.
  private let growthBytes: Int
  /// Whether the file was deleted because there was no room.
  private(set) var isSpent = false
  private var grownBytes = 0

  private var path: String { "\(directory)/\(Self.name)" }

  init(in directory: String, options: LevelDBOptions) {
    (self.directory, files) = (directory, options.files)
    // A compaction writes at most so many files, and may be needed before the one that frees room.
    byteCount = 25 * options.maxFileBytes + 2 * options.writeBufferBytes
    growthBytes = options.writeBufferBytes
  }

  /// Counts what is about to be written, and looks at the disk whenever that is much.
  mutating func willGrow(bytes: Int) {
    grownBytes += bytes
    guard grownBytes >= growthBytes else { return }
    grownBytes = 0
    keep()
  }

  /// Makes the file if the disk is nearly full, and deletes it if not.
  ///
  /// When that fails there is no reserve, and a full disk can only be read: what is written will
  /// say what is wrong.
  mutating func keep() {
    do throws(EngineError) {
      let available = try files.availableBytes(in: directory)
      let isThere = try files.kind(of: path) != nil
      if available >= Self.tightBytes + UInt64(byteCount) {
        if isThere { try files.remove(path) }
      } else if !isThere {
        // It must not be what fills the disk.
        guard available >= UInt64(byteCount + 2 * growthBytes) else { return }
        try make()
      }
      isSpent = false
    } catch {
      return
    }
  }

  /// Gives the room to what is written next; false when there is none to give.
  mutating func release() throws(EngineError) -> Bool {
    guard try files.kind(of: path) != nil else { return false }
    try files.remove(path)
    isSpent = true
    return true
  }

  /// Gives the room to a database that is about to be opened, if it needs it.
  mutating func releaseToOpen() throws(EngineError) {
    guard try files.availableBytes(in: directory) < UInt64(byteCount / 2) else { return }
    _ = try release()
  }

  private func make() throws(EngineError) {
    do throws(EngineError) {
      try files.allocate(path, count: byteCount)
    } catch {
      try files.remove(path)
      throw error
    }
  }
}
