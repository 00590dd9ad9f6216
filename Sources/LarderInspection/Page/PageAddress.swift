import Larder

/// The names and the values behind the `?` of an address.
struct PageQuery: Sendable, Equatable {
  private(set) var items: [(name: String, value: String)] = []

  init() {}

  /// Reads `a=1&b=2`, as forms write it; nil if it is not encoded as a query is, or not UTF-8.
  init?(_ text: some StringProtocol) {
    for pair in text.split(separator: "&") {
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = Self.decoded(parts[0]), let value = Self.decoded(parts.last ?? "") else {
        return nil
      }
      items.append((name, parts.count == 2 ? value : ""))
    }
  }

  static func == (first: PageQuery, second: PageQuery) -> Bool { first.text == second.text }

  /// The first value of a name; nil if it is missing or empty, as forms send fields left out.
  subscript(name: String) -> String? { self.all(name).first }

  /// All values of a name that are not empty.
  func all(_ name: String) -> [String] {
    items.filter { $0.name == name && !$0.value.isEmpty }.map(\.value)
  }

  /// The query with one value of a name, or none, in place of the others.
  func with(_ name: String, _ value: String?) -> PageQuery {
    var query = self
    query.items.removeAll { $0.name == name }
    if let value { query.items.append((name, value)) }
    return query
  }

  /// The query as it is written behind `?`.
  var text: String {
    items.map { Self.encoded($0.name) + "=" + Self.encoded($0.value) }.joined(separator: "&")
  }

  private static func encoded(_ text: String) -> String {
    var result = ""
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
        UInt8(ascii: "_"), UInt8(ascii: "~"):
        result.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        let digits = String(byte, radix: 16, uppercase: true)
        result += digits.utf8.count == 1 ? "%0" + digits : "%" + digits
      }
    }
    return result
  }

  private static func decoded(_ text: some StringProtocol) -> String? {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "+"): bytes.append(UInt8(ascii: " "))
      case UInt8(ascii: "%"):
        guard rest.count >= 2, let value = KeyForm.byte(ofHex: rest.prefix(2)) else { return nil }
        rest.removeFirst(2)
        bytes.append(value)
      default: bytes.append(byte)
      }
    }
    return String(validating: bytes, as: UTF8.self)
  }
}

/// The views of the page.
enum PageView: String, CaseIterable, Sendable {
  case overview = ""
  case entries, entry, expiry, space, watch, compare
  /// The bytes of a payload, as a picture or a download.
  case payload
  case style = "style.css"
  case icon = "icon.svg"

  var title: String {
    self == .overview ? "Overview" : rawValue.prefix(1).uppercased() + rawValue.dropFirst()
  }

  /// The address of the view, relative to the folder that all views are in.
  func address(_ query: PageQuery = PageQuery()) -> String {
    let path = self == .overview ? "./" : rawValue
    return query.items.isEmpty ? path : path + "?" + query.text
  }

  /// The address of the entries of a cache; with `isNew` in a new snapshot.
  static func entries(
    ofCache cache: String, prefix: String? = nil, isNew: Bool = false
  ) -> String {
    let query = PageQuery().with("cache", cache).with("prefix", prefix)
    return PageView.entries.address(query.with("refresh", isNew ? "1" : nil))
  }

  /// The address of an entry; with `isNew` in a new snapshot.
  static func entry(_ key: String, ofCache cache: String, isNew: Bool = false) -> String {
    let query = PageQuery().with("cache", cache).with("key", key)
    return PageView.entry.address(query.with("refresh", isNew ? "1" : nil))
  }
}
