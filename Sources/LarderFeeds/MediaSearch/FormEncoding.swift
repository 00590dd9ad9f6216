import Foundation

extension URL {
  /// Returns this URL with these fields as its query, in the encoding of HTML forms.
  ///
  /// Foundation's query items leave `+` and other characters unescaped, which servers interpret
  /// differently.
  func replacingQuery(with fields: [(name: String, value: String)]) -> URL {
    var parts = URLComponents(url: self, resolvingAgainstBaseURL: true)
    parts?.percentEncodedQuery =
      fields.map { "\(formEncoded($0.name))=\(formEncoded($0.value))" }.joined(separator: "&")
    guard let url = parts?.url else { preconditionFailure("the URL cannot have a query") }
    return url
  }
}

/// Encodes the UTF-8 bytes of a text: a space as `+`, and reserved bytes as `%XX`.
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
