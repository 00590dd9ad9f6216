// A strict reader of LevelDB's tables. A table consists of
//
//   data blocks, a block for the filter, a block that leads to it, the index, the footer
//
// and the index leads to the data blocks. A block is followed by five bytes: its compression (0
// none, 1 Snappy), and the masked CRC32C over the block as it is stored and that byte. A block of
// entries, once decompressed, consists of
//
//   entries   bytes shared with the key before, other bytes of the key, bytes of the value (three
//             varints), the other bytes of the key, the value
//   restarts  where entries share nothing (4 bytes each, little-endian), their number (4 bytes)
//
// A key of a data block is the key of the database and eight bytes, little-endian: LevelDB's
// sequence in the upper seven, and 1 for a put or 0 for a removal in the lowest.

/// Reads a table of LevelDB from its bytes, which may be damaged in any way.
package struct TableFile: Sendable {
  /// The place of a block in the file, without what follows it.
  package struct Place: Hashable, Sendable {
    package let offset: Int
    package let count: Int
  }

  /// A block, checked and decompressed.
  package struct Block: Sendable {
    package let place: Place
    package let isCompressed: Bool
    package let bytes: [UInt8]
  }

  package struct Entry: Sendable {
    /// The key of the database.
    package let key: [UInt8]
    package let sequence: UInt64
    package let isRemoval: Bool
    /// The place of the value in the block; empty for a removal.
    package let value: Range<Int>
  }

  /// What is wrong, and where in the file.
  package struct Fault: Error, Hashable, Sendable, CustomStringConvertible {
    package let offset: Int
    package let message: String
    /// Whether the block is intact, but in a form that LevelDB does not read.
    package var isUnsupported = false

    package var description: String { "byte \(offset): \(message)" }
  }

  private static let trailerBytes = 5

  /// The data blocks, in the order of their keys.
  package private(set) var blocks: [Place] = []
  /// For each data block, a key of the database at or after its last one and before the next block.
  private var lastKeys: [[UInt8]] = []
  /// The name of the filter's policy; nil if there is no filter, or its name cannot be read.
  package private(set) var filterPolicy: String?
  /// The place of the filter.
  package private(set) var filter: Place?
  /// What is wrong with the filter, without which entries can be read.
  package private(set) var filterFault: Fault?

  private let bytes: [UInt8]

  /// Reads the footer, the index and the filter.
  ///
  /// - Throws: A ``Fault`` if the footer or the index is damaged.
  package init(_ bytes: [UInt8]) throws(Fault) {
    self.bytes = bytes
    guard let footer = TableFooter(endOf: bytes) else {
      throw Fault(
        offset: max(0, bytes.count - TableFooter.byteCount),
        message: "the file does not end like a table")
    }
    let index = try block(at: try place(footer.index, namedAt: bytes.count))
    var entries = RawEntries(of: index)
    while let (key, value) = try entries.next() {
      let handle = Self.handle(in: index.bytes[value])
      blocks.append(try place(handle, namedAt: index.place.offset))
      lastKeys.append(Array(key.dropLast(8)))
    }
    do throws(Fault) {
      try readFilter(namedIn: try block(at: try place(footer.metaindex, namedAt: bytes.count)))
    } catch {
      filterFault = error
    }
  }

  private mutating func readFilter(namedIn names: Block) throws(Fault) {
    var entries = RawEntries(of: names)
    while let (key, value) = try entries.next() {
      let name = String(decoding: key, as: UTF8.self)
      guard name.hasPrefix("filter.") else { continue }
      filterPolicy = String(name.dropFirst(7))
      let place = try place(Self.handle(in: names.bytes[value]), namedAt: names.place.offset)
      filter = place
      _ = try block(at: place)
    }
  }

  /// The place that a handle names, if it lies in the file before the footer.
  private func place(
    _ handle: TableFooter.Handle?, namedAt offset: Int
  ) throws(Fault) -> Place {
    let room = UInt64(bytes.count - TableFooter.byteCount)
    guard let handle, handle.offset <= room, handle.count <= room - handle.offset,
      room - handle.offset - handle.count >= UInt64(Self.trailerBytes)
    else { throw Fault(offset: offset, message: "a block is named that is not in the file") }
    return Place(offset: Int(handle.offset), count: Int(handle.count))
  }

  private static func handle(in value: ArraySlice<UInt8>) -> TableFooter.Handle? {
    var rest = value
    return TableFooter.takeHandle(from: &rest)
  }

  /// The data blocks that may have entries of a key of the database.
  package func blocks(with key: [UInt8]) -> [Place] {
    blocks.indices.filter { index in
      let isBefore = lastKeys[index].lexicographicallyPrecedes(key)
      let isAfter = index > 0 && key.lexicographicallyPrecedes(lastKeys[index - 1])
      return !isBefore && !isAfter
    }.map { blocks[$0] }
  }

  /// Reads and checks a block.
  package func block(at place: Place) throws(Fault) -> Block {
    try Self.block(at: place, in: bytes)
  }

  private static func block(at place: Place, in bytes: [UInt8]) throws(Fault) -> Block {
    let end = place.offset + place.count
    let sum = bytes.withUnsafeBytes {
      crc32c(UnsafeRawBufferPointer(rebasing: $0[place.offset...end]))
    }
    guard isChecksum(sum, at: end + 1, in: bytes) else {
      throw Fault(offset: place.offset, message: "the checksum of the block does not match")
    }
    let contents = bytes[place.offset..<end]
    switch bytes[end] {
    case 0: return Block(place: place, isCompressed: false, bytes: Array(contents))
    case 1:
      var buffer = ByteBuffer()
      let isValid = Snappy.decompress(
        bytes.span.bytes.extracting(place.offset..<end), to: &buffer)
      guard isValid else {
        throw Fault(offset: place.offset, message: "the block cannot be decompressed")
      }
      return Block(place: place, isCompressed: true, bytes: Array(buffer))
    case let type:
      let name = compression(type, of: contents)
      throw Fault(
        offset: place.offset, message: "not supported: \(name)", isUnsupported: true)
    }
  }

  /// The blocks of a compression that LevelDB does not read, in words.
  private static func compression(_ type: UInt8, of block: ArraySlice<UInt8>) -> String {
    // Minecraft's LevelDB has zlib with its header as 2 and without as 4; later versions of
    // LevelDB have Zstandard as 2.
    switch type {
    case 2 where block.first == 0x78, 4: "zlib-compressed blocks"
    case 2 where block.starts(with: [0x28, 0xB5, 0x2F, 0xFD]): "Zstandard-compressed blocks"
    default: "blocks of the unknown compression \(type)"
    }
  }

  /// Whether the masked form of `sum` is at `offset`.
  private static func isChecksum(_ sum: UInt32, at offset: Int, in bytes: [UInt8]) -> Bool {
    let stored = bytes.withUnsafeBytes {
      UInt32(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }
    return stored == maskedForLevelDB(sum)
  }

  /// Whether bytes end like a table, as one that is being written does not.
  static func hasEnd(_ bytes: [UInt8]) -> Bool { TableFooter(endOf: bytes) != nil }

  /// The first block of a table without an index; nil if there is no intact one.
  ///
  /// Its length is not known, so it is the first one at which the checksum matches.
  static func firstBlock(of bytes: [UInt8]) -> Block? {
    var sum: UInt32 = 0
    for end in 0..<max(0, bytes.count - trailerBytes + 1) {
      // This byte is the compression, if the block ends before it.
      sum = bytes.withUnsafeBytes {
        crc32c(UnsafeRawBufferPointer(rebasing: $0[end...end]), extending: sum)
      }
      guard bytes[end] <= 1, isChecksum(sum, at: end + 1, in: bytes) else { continue }
      do throws(Fault) {
        return try block(at: Place(offset: 0, count: end), in: bytes)
      } catch {
        return nil
      }
    }
    return nil
  }

  /// The keys of the database between which the keys of a data block are, both included.
  ///
  /// The first is nil for the first block.
  func bounds(ofBlock index: Int) -> (first: [UInt8]?, last: [UInt8]) {
    (index > 0 ? lastKeys[index - 1] : nil, lastKeys[index])
  }

  /// The entries of a data block, one after another.
  package struct Entries {
    private var raw: RawEntries

    package init(of block: Block) { raw = RawEntries(of: block) }

    /// The next entry; nil at the end.
    package mutating func next() throws(Fault) -> Entry? {
      guard let (key, value) = try raw.next() else { return nil }
      guard key.count >= 8, key[key.count - 8] <= 1 else {
        throw raw.fault("an entry of the block has no sequence")
      }
      let tag = key.suffix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      return Entry(
        key: Array(key.dropLast(8)), sequence: tag >> 8, isRemoval: tag & 1 == 0, value: value)
    }
  }
}

/// The entries of any block with keys.
private struct RawEntries {
  private let block: TableFile.Block
  private var at = 0
  /// The end of the entries; nil if the block has no room for its restarts.
  private let end: Int?
  private var key: [UInt8] = []

  init(of block: TableFile.Block) {
    self.block = block
    end = Self.endOfEntries(in: block.bytes)
  }

  private static func endOfEntries(in bytes: [UInt8]) -> Int? {
    guard bytes.count >= 4 else { return nil }
    let restarts = bytes.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
    let end = bytes.count - 4 * (restarts + 1)
    return end >= 0 ? end : nil
  }

  mutating func next() throws(TableFile.Fault) -> (key: [UInt8], value: Range<Int>)? {
    guard let end else { throw fault("the block has more restarts than bytes") }
    guard at < end else { return nil }
    var place = at
    let contents = block.bytes
    let bytes = contents.span.bytes.extracting(0..<end)
    guard let shared = readVarint(bytes, at: &place), let others = readVarint(bytes, at: &place),
      let valueCount = readVarint(bytes, at: &place), shared <= key.count,
      others <= end - place, valueCount <= end - place - Int(others)
    else { throw fault("an entry of the block is longer than the block") }
    let value = (place + Int(others))..<(place + Int(others) + Int(valueCount))
    key.removeLast(key.count - Int(shared))
    key += contents[place..<value.lowerBound]
    at = value.upperBound
    return (key, value)
  }

  func fault(_ message: String) -> TableFile.Fault {
    TableFile.Fault(offset: block.place.offset, message: message)
  }
}
