/// Where a payload lies that is not in LevelDB, for inspection.
package struct PayloadPlace: Hashable, Sendable {
  /// The name of the segment's file.
  package let file: String
  /// Where the payload's frame begins in the file.
  package let offset: Int
  /// The size of the value before the payload, which is in LevelDB's row.
  package let headCount: Int
  /// The size of the payload.
  package let byteCount: Int
}

extension PayloadPlace {
  /// The place of the payload of a row of LevelDB; nil if that is in the row.
  package init?(
    ofRow value: UnsafeRawBufferPointer, under key: UnsafeRawBufferPointer,
    by separation: ValueSeparation
  ) {
    guard let row = SeparatedRow(value, under: key, by: separation) else { return nil }
    self.init(
      file: SegmentHeader.name(of: row.pointer.segment), offset: row.pointer.offset,
      headCount: row.headCount, byteCount: row.pointer.payloadCount)
  }
}

extension LevelDBEngine {
  /// The place of the payload of the value under `key`.
  ///
  /// Nil if there is no value, or its payload is in LevelDB. The segment is not read.
  package func payloadPlace(of key: [UInt8]) throws(StoreError) -> PayloadPlace? {
    guard let format = options.separation else { return nil }
    try enter()
    defer { leave() }
    var buffer = ValueBuffer()
    do throws(StoreError) {
      guard try buffer.read(key.span.bytes, from: database.pointer) else { return nil }
    } catch {
      throw noted(error)
    }
    return key.withUnsafeBytes { PayloadPlace(ofRow: buffer.memory.bytes, under: $0, by: format) }
  }
}
