// The last 48 bytes of a LevelDB table have no checksum:
//
//   handle of a block that leads to the filter: offset and size, two varints
//   handle of the index: the same
//   zeros, up to 40 bytes
//   8 bytes that say that it is a table: 57 fb 80 8b 24 75 47 db
//
// LevelDB takes memory of the size that a handle tells, before it reads. When there is not so much,
// C++ ends the process; and an offset that overflows leads to memory that is not the table's. So
// both are looked for first.

/// The end of a table.
struct TableFooter {
  static let byteCount = 48

  private static let magic: [UInt8] = [0x57, 0xFB, 0x80, 0x8B, 0x24, 0x75, 0x47, 0xDB]

  private let bytes: [UInt8]

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Whether LevelDB can be given a table of `tableBytes` with this end.
  ///
  /// It can be given what it refuses by itself, too.
  func isSafe(inTableOf tableBytes: Int) -> Bool {
    guard bytes.count == Self.byteCount, bytes.suffix(8) == Self.magic[...] else { return true }
    var rest = bytes[...]
    for _ in 0..<2 {
      guard let offset = Self.takeNumber(from: &rest), let size = Self.takeNumber(from: &rest)
      else { return true }
      // LevelDB refuses an offset behind the end, unless adding the size to it overflows.
      guard size <= tableBytes, offset <= UInt64.max / 2 else { return false }
    }
    return true
  }

  /// A varint as LevelDB reads it: longer than it need be, or over 64 bits, if it is written so.
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
  /// Throws when a table must not be given to LevelDB.
  ///
  /// - Complexity: A short read of each table.
  func requireSafeTables(
    in path: String, names: Set<String>, files: any StoreFiles
  ) throws(EngineError) {
    for (number, table) in tables where table.bytes >= TableFooter.byteCount {
      guard let name = Self.name(ofTable: number, among: names) else { continue }
      let start = table.bytes - TableFooter.byteCount
      let end = try files.read("\(path)/\(name)", from: start, count: TableFooter.byteCount)
      guard TableFooter(end).isSafe(inTableOf: table.bytes) else {
        throw .corrupt("\(path)/\(name) is damaged: its end leads out of it")
      }
    }
  }
}
