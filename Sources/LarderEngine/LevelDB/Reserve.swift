/// Room on a disk that is nearly full, kept for the writes that free room.
///
/// Nothing can be removed from a store on a full disk: a removal is written before it gives room
/// back. So while the disk is nearly full, a file holds the room that removals take: for the tables
/// that LevelDB's memory becomes, and for a compaction. The file is deleted when a batch that frees
/// room finds none, or when opening the store needs its room. Without it the reserve is spent: only
/// batches that free room are written, until the file can be made again.
///
/// The disk and the size of the file alone say whether the reserve is spent. So each opening finds
/// the state in which the last one ended.
struct Reserve {
  static let name = "LARDER.reserve"
  /// A disk with less than this beside the reserve is nearly full.
  private static let tightBytes: UInt64 = 256 << 20
  /// The smallest write buffer that LevelDB allows.
  private static let leastBufferBytes = 64 << 10
  /// What LevelDB writes at an opening beside its tables.
  private static let openingBytes = 128 << 10
  /// What is left for the log when the reserve takes the rest.
  private static let logBytes = 16 << 10

  private let directory: String
  private let files: any StoreFiles
  /// LevelDB's write buffer; the disk is looked at whenever so much was written.
  private let bufferBytes: Int
  /// What one compaction writes at most.
  private let compactionBytes: Int
  private var heldBytes: Int
  /// How much an opening has taken from the reserve, to be given back by ``restore(storeBytes:)``.
  private var lentBytes = 0
  private var grownBytes = 0
  /// Whether the disk is nearly full and the file does not hold what a removal takes.
  private(set) var isSpent = false

  /// Whether an opening uses room of the reserve.
  var isLent: Bool { lentBytes > 0 }

  private var path: String { "\(directory)/\(Self.name)" }

  /// The least that is enough: for both buffers of LevelDB's memory, and the logs of new ones.
  private var leastBytes: Int { 4 * bufferBytes }

  init(in directory: String, options: LevelDBOptions) throws(EngineError) {
    (self.directory, files) = (directory, options.files)
    bufferBytes = options.writeBufferBytes
    compactionBytes = 25 * options.maxFileBytes
    heldBytes = try files.byteCount(of: "\(directory)/\(Self.name)") ?? 0
  }

  /// The write buffer for a store in `directory`: `bufferBytes`, or less on a disk that is nearly
  /// full.
  ///
  /// The reserve grows with the buffer. A small volume would have no room for that of a large one.
  static func bufferBytes(
    atMost bufferBytes: Int, in directory: String, files: any StoreFiles
  ) throws(EngineError) -> Int {
    let held = try files.byteCount(of: "\(directory)/\(name)") ?? 0
    let room = try files.availableBytes(in: directory) + UInt64(held)
    return max(min(bufferBytes, Int(clamping: room / 64)), min(bufferBytes, leastBufferBytes))
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
  /// The file holds as much as a compaction of a store of `storeBytes` may write, and four buffers.
  /// Where room is scarce, it holds half of what is left, and four buffers if they are there.
  mutating func restore(storeBytes: UInt64) {
    do throws(EngineError) {
      let available = try files.availableBytes(in: directory)
      let wanted = Int(min(storeBytes, UInt64(compactionBytes))) + leastBytes
      guard available < Self.tightBytes + UInt64(wanted) else {
        try remove()
        (lentBytes, isSpent) = (0, false)
        return
      }
      let left = Int(available) + heldBytes
      // Room that was given to a removal must not be taken back before it is used.
      let spare = isSpent ? wanted : 2 * bufferBytes
      try grow(to: min(max(lentBytes, leastBytes), wanted, left - Self.logBytes))
      try grow(to: min(wanted, left / 2, left - spare))
      (lentBytes, isSpent) = (0, heldBytes < leastBytes)
    } catch {
      // The disk could not be asked, or took no file. A write that needs room says what is wrong.
      isSpent = heldBytes < leastBytes
    }
  }

  /// Gives the reserve's room to the next writes; false if it has none.
  mutating func use() throws(EngineError) -> Bool {
    guard heldBytes > 0 else { return false }
    try remove()
    isSpent = true
    return true
  }

  /// Gives the room to a database that is about to be opened, as much of it as it needs.
  ///
  /// Opening writes what is in the logs into tables, and a new MANIFEST.
  mutating func lendToOpen() throws(EngineError) {
    var needed = Self.openingBytes
    for name in try files.names(in: directory) {
      guard LogSurvey.number(of: name) != nil || name.hasPrefix("MANIFEST-") else { continue }
      needed += try files.byteCount(of: "\(directory)/\(name)") ?? 0
    }
    let available = try files.availableBytes(in: directory)
    guard heldBytes > 0, available < UInt64(needed) else { return }
    lentBytes = heldBytes
    heldBytes = max(0, heldBytes - (needed - Int(available)))
    try files.truncate(path, to: heldBytes)
  }

  private mutating func grow(to count: Int) throws(EngineError) {
    guard count > heldBytes else { return }
    try files.allocate(path, count: count)
    heldBytes = count
  }

  private mutating func remove() throws(EngineError) {
    if try files.kind(of: path) != nil { try files.remove(path) }
    heldBytes = 0
  }
}
