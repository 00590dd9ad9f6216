/// Writes LevelDB's log format: the blocks and chunks that ``LogScan`` reads.
package struct LogWriter {
  private static let blockBytes = 32 << 10
  private static let headerBytes = 7

  package private(set) var bytes: [UInt8] = []

  package init() {}

  /// Appends a record.
  package mutating func add(_ record: [UInt8]) {
    var rest = record[...]
    var isFirst = true
    repeat {
      var room = Self.blockBytes - bytes.count % Self.blockBytes
      if room < Self.headerBytes {
        bytes += Array(repeating: 0, count: room)
        room = Self.blockBytes
      }
      let data = rest.prefix(room - Self.headerBytes)
      rest = rest.dropFirst(data.count)
      // 1 is a whole record; 2, 3 and 4 are the first, a middle and the last part of one.
      let type: UInt8 = rest.isEmpty ? (isFirst ? 1 : 4) : (isFirst ? 2 : 3)
      let covered = [type] + data
      let sum = covered.withUnsafeBytes { crc32c($0) }
      let masked = maskedForLevelDB(sum)
      bytes += withUnsafeBytes(of: masked.littleEndian, Array.init)
      bytes += withUnsafeBytes(of: UInt16(data.count).littleEndian, Array.init)
      bytes += covered
      isFirst = false
    } while !rest.isEmpty
  }

  /// Appends bytes unchanged.
  package mutating func addRaw(_ more: [UInt8]) { bytes += more }
}
