import LarderBytes
import LarderEngine

/// Writes LevelDB's log format, as LevelDB would.
struct LogWriter {
  private(set) var bytes: [UInt8] = []

  /// Appends a batch of puts, as long as `count` rows need.
  mutating func addBatch(sequence: UInt64, rows: [(key: [UInt8], value: [UInt8])]) {
    var batch = withUnsafeBytes(of: sequence.littleEndian, Array.init)
    batch += withUnsafeBytes(of: UInt32(rows.count).littleEndian, Array.init)
    for row in rows {
      batch.append(1)
      for text in [row.key, row.value] {
        appendVarint(UInt64(text.count), to: &batch)
        batch += text
      }
    }
    add(batch)
  }

  /// Appends a record.
  mutating func add(_ record: [UInt8]) {
    var rest = record[...]
    var isFirst = true
    repeat {
      var room = 32_768 - bytes.count % 32_768
      if room < 7 {
        bytes += Array(repeating: 0, count: room)
        room = 32_768
      }
      let data = rest.prefix(room - 7)
      rest = rest.dropFirst(data.count)
      let type: UInt8 = rest.isEmpty ? (isFirst ? 1 : 4) : (isFirst ? 2 : 3)
      let covered = [type] + data
      let sum = covered.withUnsafeBytes { crc32c($0) }
      let masked = (sum >> 15 | sum << 17) &+ 0xA282_EAD8
      bytes += withUnsafeBytes(of: masked.littleEndian, Array.init)
      bytes += withUnsafeBytes(of: UInt16(data.count).littleEndian, Array.init)
      bytes += covered
      isFirst = false
    } while !rest.isEmpty
  }

  mutating func addRaw(_ more: [UInt8]) { bytes += more }
}
