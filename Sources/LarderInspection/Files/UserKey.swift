/// The key that opens the sealed records of a store.
///
/// It is in a file of its own. A key is never an argument, which every user of a machine can see,
/// and never a variable of the environment, which child processes inherit.
package struct UserKey: Sendable {
  static let byteCount = 32

  let bytes: [UInt8]
  /// A name under which a cache was sealed that has lost it; nil for none.
  let lostName: String?

  /// Reads the key in a file: 32 bytes, or 64 hexadecimal digits and white space around them.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - lostName: A name under which a cache was sealed that has lost it; nil for none.
  /// - Throws: An ``InspectionError`` with the status `usage` if there is no file, or no key in
  ///   it; `io` if it cannot be read.
  package init(inFile path: String, lostName: String?) throws(InspectionError) {
    self.lostName = lostName
    guard let bytes = try FileAccess.read(path, limit: 256) else {
      throw InspectionError(.usage, "there is no file \(path)")
    }
    if bytes.count == Self.byteCount {
      self.bytes = bytes
      return
    }
    let text = String(decoding: bytes, as: UTF8.self).filter { !$0.isWhitespace }
    guard let key = KeyForm.bytes(ofHex: "0x" + text), key.count == Self.byteCount else {
      throw InspectionError(
        .usage, "\(path) has no key: 32 bytes, or 64 hexadecimal digits, are expected")
    }
    self.bytes = key
  }
}
