import Foundation

extension KeyKind {
  /// The key as text, for messages and tools.
  ///
  /// Text is shown as it is, an integer in decimal, a UUID in its usual form. Other bytes, and
  /// bytes that are not a valid key of this kind, are shown in hexadecimal with the prefix `0x`.
  package func describe(_ key: RawSpan) -> String {
    let text: String? =
      switch self {
      case .text: String(encodedKey: key)
      case .integer: Int(encodedKey: key).map(String.init)
      case .uuid: UUID(encodedKey: key)?.uuidString
      default: nil
      }
    return text ?? "0x" + key.withUnsafeBytes { hex($0) }
  }
}

private func hex(_ bytes: UnsafeRawBufferPointer) -> String {
  let digits = Array("0123456789abcdef".utf8)
  var text: [UInt8] = []
  text.reserveCapacity(bytes.count * 2)
  for byte in bytes {
    text.append(digits[Int(byte >> 4)])
    text.append(digits[Int(byte & 15)])
  }
  return String(decoding: text, as: UTF8.self)
}
