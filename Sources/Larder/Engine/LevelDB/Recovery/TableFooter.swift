// The last 48 bytes of a LevelDB table have no checksum:
//
//   handle of a block that leads to the filter: offset and size, two varints
//   handle of the index: the same
//   zeros, up to 40 bytes
//   8 bytes that identify a table: 57 fb 80 8b 24 75 47 db
//
// LevelDB allocates memory of the size in a handle before it reads. If there is not enough, C++
// ends the process; and an offset that overflows leads to memory outside the table. So both are
// checked first.

/// The footer of a table.
struct TableFooter {
  static let byteCount = 48

  private static let magic: [UInt8] = [0x57, 0xFB, 0x80, 0x8B, 0x24, 0x75, 0x47, 0xDB]

  private let bytes: [UInt8]

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The footer at the end of a table; nil if the bytes do not end like a table.
  init?(endOf table: [UInt8]) {
    bytes = table.suffix(Self.byteCount)
    guard bytes.count == Self.byteCount, bytes.suffix(8) == Self.magic[...] else { return nil }
  }

  /// Whether LevelDB can safely open a table of `tableBytes` with this footer.
  ///
  /// A table that LevelDB refuses by itself is safe, too.
  func isSafe(inTableOf tableBytes: Int) -> Bool {
    guard bytes.count == Self.byteCount, bytes.suffix(8) == Self.magic[...] else { return true }
    var rest = bytes[...]
    for _ in 0..<2 {
      guard let handle = Self.takeHandle(from: &rest) else { return true }
      // LevelDB refuses an offset beyond the end, unless adding the size to it overflows.
      guard handle.count <= tableBytes, handle.offset <= UInt64.max / 2 else { return false }
    }
    return true
  }

  /// The handle of the block that leads to the filter.
  var metaindex: Handle? {
    var rest = bytes[...]
    return Self.takeHandle(from: &rest)
  }

  /// The handle of the index.
  var index: Handle? {
    var rest = bytes[...]
    return Self.takeHandle(from: &rest).flatMap { _ in Self.takeHandle(from: &rest) }
  }

  /// The place of a block, as it is written.
  typealias Handle = (offset: UInt64, count: UInt64)

  static func takeHandle(from bytes: inout ArraySlice<UInt8>) -> Handle? {
    guard let offset = takeNumber(from: &bytes), let count = takeNumber(from: &bytes) else {
      return nil
    }
    return (offset, count)
  }

  /// A varint as LevelDB reads it, which may be longer than necessary or exceed 64 bits.
  private static func takeNumber(from bytes: inout ArraySlice<UInt8>) -> UInt64? {
    var number: UInt64 = 0
    for shift in stride(from: UInt64(0), through: 63, by: 7) {
      guard let byte = bytes.popFirst() else { return nil }
      number |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 { return number }
    }
    return nil
  }
}

extension Manifest {
  /// Throws if LevelDB cannot safely open a table.
  ///
  /// - Complexity: A short read of each table.
  func requireSafeTables(
    in path: String, names: Set<String>, files: any StoreFiles
  ) throws(StoreError) {
    for (number, table) in tables {
      guard let name = Self.name(ofTable: number, among: names) else { continue }
      let start = table.bytes - TableFooter.byteCount
      // Read in any case: LevelDB would wait for a FIFO of that name.
      let end = try files.read(
        "\(path)/\(name)", from: max(0, start), count: TableFooter.byteCount)
      guard start < 0 || TableFooter(end).isSafe(inTableOf: table.bytes) else {
        throw .corrupt("\(path)/\(name) is damaged: its footer points outside the file")
      }
    }
  }
}
