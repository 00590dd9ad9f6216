/// Room on a nearly full disk, reserved for writes that free room.
///
/// On a full disk nothing could be removed from a store, because a removal is written before it
/// frees room. So while the disk is nearly full, a file occupies the room that removals need: for
/// the tables of LevelDB's memory, and for a compaction. The file is deleted when a batch that
/// frees room finds none, or when opening the store needs its room. The reserve is then spent: only
/// batches that free room are written until the file can be created again.
///
/// Whether the reserve is spent follows from the free room and the size of the file alone, so each
/// opening finds the state in which the last one ended.
package struct Reserve {
  package static let name = "LARDER.reserve"
  /// A disk with less free room than this, besides the reserve, is nearly full.
  private static let tightBytes: UInt64 = 256 << 20
  /// The least that sizes are limited to: the smallest write buffer that LevelDB allows.
  private static let leastLimit = 64 << 10
  /// What an opening needs besides the sizes of files, for blocks that are begun.
  private static let slackBytes = 32 << 10
  /// What an opening is given in addition: ext4 may need more for its own accounts.
  private static let extraBytes = 96 << 10
  /// The bytes left for the log when the reserve takes the rest.
  private static let logBytes = 16 << 10

  private let directory: String
  private let files: any StoreFiles
  /// LevelDB's write buffer; the free room is checked each time this much was written.
  private let bufferBytes: Int
  /// The most that one compaction writes.
  private let compactionBytes: Int
  private var heldBytes: Int
  /// The bytes that an opening has taken from the reserve; ``restore()`` returns them.
  private var lentBytes = 0
  /// The size of the store when the reserve was last restored.
  private var storeBytes: UInt64 = 0
  private var grownBytes = 0
  /// Whether the disk is full, or nearly full and the file is smaller than a removal needs.
  private(set) var isSpent = false

  /// Whether the disk was nearly full when that was last checked.
  var isNeeded: Bool { isSpent || heldBytes > 0 }

  private var path: String { "\(directory)/\(Self.name)" }

  /// The smallest reserve: for both buffers of LevelDB's memory, and the logs of new ones.
  private var leastBytes: Int { 4 * bufferBytes }

  init(in directory: String, options: LevelDBOptions) throws(StoreError) {
    (self.directory, files) = (directory, options.files)
    bufferBytes = options.writeBufferBytes
    compactionBytes = 25 * options.maxFileBytes
    heldBytes = try files.byteCount(of: "\(directory)/\(Self.name)") ?? 0
  }

  /// Limits the write buffer to a 64th of the room on the disk of `directory`, and segments to a
  /// 32nd.
  ///
  /// The reserve grows with the buffer, and a segment is given back as a whole. A small volume has
  /// no room for large ones.
  static func limitSizes(
    of options: inout LevelDBOptions, in directory: String
  ) throws(StoreError) {
    let files = options.files
    let held = try files.byteCount(of: "\(directory)/\(name)") ?? 0
    let room = Int(clamping: try files.availableBytes(in: directory) + UInt64(held))
    options.writeBufferBytes = limited(options.writeBufferBytes, to: room / 64)
    guard room / 32 < options.segmentBytes else { return }
    var roomForSegments = room
    for name in try files.names(in: directory) where SegmentHeader.number(of: name) != nil {
      roomForSegments += try files.byteCount(of: "\(directory)/\(name)") ?? 0
    }
    options.segmentBytes = limited(options.segmentBytes, to: roomForSegments / 32)
  }

  private static func limited(_ count: Int, to most: Int) -> Int {
    max(min(count, most), min(count, leastLimit))
  }

  /// Whether a disk has little free room, so that none of it may be allocated in advance.
  static func isTight(
    _ directory: String, _ files: any StoreFiles
  ) throws(StoreError) -> Bool {
    try files.availableBytes(in: directory) < 2 * tightBytes
  }

  /// Counts bytes that are about to be written; true if it is time to check the free room.
  mutating func willGrow(bytes: Int) -> Bool {
    grownBytes += bytes
    guard grownBytes >= bufferBytes else { return false }
    grownBytes = 0
    return true
  }

  /// Creates the file if the disk is nearly full, and deletes it otherwise.
  ///
  /// The file is as large as the output of a compaction of a store of `storeBytes`, plus four write
  /// buffers. If there is less room, it takes half of it, and at least four buffers if possible.
  /// Once it was used, it takes half.
  mutating func restore(storeBytes: UInt64) {
    self.storeBytes = storeBytes
    restore()
  }

  /// The same, for a store of the last size.
  mutating func restore() {
    do throws(StoreError) {
      let available = try files.availableBytes(in: directory)
      let wanted = Int(min(storeBytes, UInt64(compactionBytes))) + leastBytes
      guard available < Self.tightBytes + UInt64(wanted) else {
        try remove()
        (lentBytes, isSpent) = (0, false)
        return
      }
      let left = Int(available) + heldBytes
      // Room that was given to a removal is not taken back before it is used. LevelDB's compactions
      // need some of it, and refuse all writes if they find none.
      let spare = isSpent ? wanted : 2 * bufferBytes
      let most = isSpent ? left / 2 : left - Self.logBytes
      try grow(to: min(max(lentBytes, leastBytes), wanted, most))
      try grow(to: min(wanted, left / 2, left - spare))
      // The superuser may write on when no room is left for others. But then the reserve would give
      // back room that does not count.
      (lentBytes, isSpent) = (0, available == 0 || heldBytes < leastBytes)
    } catch {
      // The free room is unknown, or the disk accepted no file. A write that needs room throws.
      isSpent = heldBytes < leastBytes
    }
  }

  /// Whether the disk has room to open the database, or to write its memory into tables, once files
  /// of `deletedBytes` are deleted.
  ///
  /// With `forFreeing`, the next writes are given the reserve's room if that is then enough.
  mutating func hasRoom(forFreeing: Bool, after deletedBytes: Int) throws(StoreError) -> Bool {
    let missing = try missingBytes() - deletedBytes
    guard missing > 0 else { return true }
    guard forFreeing, missing <= heldBytes else { return false }
    try remove()
    isSpent = true
    return true
  }

  /// Gives a database that is about to be opened as much of the room as it needs.
  ///
  /// - Returns: Whether the disk has less free room than that.
  mutating func lendToOpen() throws(StoreError) -> Bool {
    let missing = try missingBytes() + Self.extraBytes
    guard missing > 0 else { return false }
    guard heldBytes > 0 else { return true }
    lentBytes = heldBytes
    heldBytes = max(0, heldBytes - missing)
    try files.truncate(path, to: heldBytes)
    return true
  }

  /// How much more an opening writes than the disk has room for; negative if the disk has more.
  ///
  /// Opening writes the rows of the logs into tables, and a new MANIFEST. A table is about as large
  /// as its log, and larger if the log has many short rows, such as removals. So an eighth is
  /// added.
  private func missingBytes() throws(StoreError) -> Int {
    var needed = Self.slackBytes
    for name in try files.names(in: directory) {
      switch DataFile(name) {
      case .log:
        let count = try byteCount(of: name)
        needed += count + count / 8
      case .manifest: needed += try byteCount(of: name)
      default: break
      }
    }
    // The free room is asked for last. If LevelDB turns a log into a table in between, both count,
    // and the answer is too high. The other way round neither would count.
    return needed - Int(clamping: try files.availableBytes(in: directory))
  }

  private func byteCount(of name: String) throws(StoreError) -> Int {
    try files.byteCount(of: "\(directory)/\(name)") ?? 0
  }

  private mutating func grow(to count: Int) throws(StoreError) {
    guard count > heldBytes else { return }
    try files.allocate(path, count: count)
    heldBytes = count
  }

  private mutating func remove() throws(StoreError) {
    if try files.kind(of: path) != nil { try files.remove(path) }
    heldBytes = 0
  }
}
