/// Room that is kept on a disk that is nearly full, for writes that free room.
///
/// On a full disk nothing can be removed: a removal is written before anything is given back. So
/// while the disk is nearly full, a file holds room for what a removal takes: what is in LevelDB's
/// memory goes into tables, and a range is compacted. It is deleted when a batch that frees room
/// finds none; from then on only such batches are written, until there is room for the file again.
struct Reserve {
  static let name = "LARDER.reserve"
  /// A disk with less than this beside the reserve is nearly full.
  private static let tightBytes: UInt64 = 256 << 20

  private let directory: String
  private let files: any StoreFiles
  /// LevelDB's write buffer; the disk is looked at whenever so much was written.
  private let bufferBytes: Int
  /// What one compaction writes at most.
  private let compactionBytes: Int
  private var heldBytes = 0
  private var grownBytes = 0
  /// Whether the file was deleted because there was no room.
  private(set) var isSpent = false

  private var path: String { "\(directory)/\(Self.name)" }

  init(in directory: String, options: LevelDBOptions) {
    (self.directory, files) = (directory, options.files)
    bufferBytes = options.writeBufferBytes
    compactionBytes = 25 * options.maxFileBytes
  }

  /// Counts what is about to be written; true when it is time to look at the disk.
  mutating func willGrow(bytes: Int) -> Bool {
    grownBytes += bytes
    guard grownBytes >= bufferBytes else { return false }
    grownBytes = 0
    return true
  }

  /// Makes the file if the disk is nearly full, and deletes it if not.
  ///
  /// It holds as much as a compaction of a store of `storeBytes` may write, and a few buffers. When
  /// it cannot be made there is no reserve, and a full disk can only be read: what is written will
  /// say what is wrong.
  mutating func keep(storeBytes: UInt64) {
    let wanted = Int(min(storeBytes, UInt64(compactionBytes))) + 4 * bufferBytes
    // Room that was just given away must not be taken back before it is used.
    let spare = isSpent ? wanted : 2 * bufferBytes
    do throws(EngineError) {
      let available = try files.availableBytes(in: directory)
      let isThere = try files.kind(of: path) != nil
      if available >= Self.tightBytes + UInt64(wanted) {
        if isThere { try files.remove(path) }
        (heldBytes, isSpent) = (0, false)
      } else if wanted <= heldBytes || available < UInt64(wanted - heldBytes + spare) {
        // It is large enough, or more of it would be what fills the disk.
        if isThere { isSpent = false }
      } else {
        try files.allocate(path, count: wanted)
        (heldBytes, isSpent) = (wanted, false)
      }
    } catch {
      return
    }
  }

  /// Gives the room to what is written next; false when there is none to give.
  mutating func release() throws(EngineError) -> Bool {
    guard try files.kind(of: path) != nil else { return false }
    try files.remove(path)
    (heldBytes, isSpent) = (0, true)
    return true
  }

  /// Gives the room to a database that is about to be opened, if it needs it.
  mutating func releaseToOpen() throws(EngineError) {
    guard try files.availableBytes(in: directory) < UInt64(4 * bufferBytes) else { return }
    _ = try release()
  }
}
