import Foundation

extension URL {
  /// This URL, its query being these fields, in the encoding of HTML forms.
  ///
  /// Foundation's own query items leave `+` and others as they are, which servers read differently.
  func replacingQuery(with fields: [(name: String, value: String)]) -> URL {
    var parts = URLComponents(url: self, resolvingAgainstBaseURL: true)
    parts?.percentEncodedQuery =
      fields.map { "\(formEncoded($0.name))=\(formEncoded($0.value))" }.joined(separator: "&")
    guard let url = parts?.url else { preconditionFailure("a URL that no query can be added to") }
    return url
  }
}

/// The UTF-8 bytes of a text: a space as `+`, and what may not stay as it is as `%XX`.
private func formEncoded(_ text: String) -> String {
  var encoded: [UInt8] = []
  for byte in text.utf8 {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"),
      UInt8(ascii: "_"), UInt8(ascii: "*"):
      encoded.append(byte)
    case UInt8(ascii: " "): encoded.append(UInt8(ascii: "+"))
    default:
      let digits = Array("0123456789ABCDEF".utf8)
      encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
  }
  return String(decoding: encoded, as: UTF8.self)
}
