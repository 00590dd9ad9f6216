/// The name of a cache as a dictionary key; names are equal only if their bytes are equal.
///
/// `String` compares by canonical equivalence: "\u{E9}" equals "e\u{301}". On disk these are two
/// different names, each with its own row.
struct CacheName: Hashable, Sendable {
  let text: String

  init(_ text: String) { self.text = text }

  static func == (a: CacheName, b: CacheName) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }

  func hash(into hasher: inout Hasher) {
    for byte in text.utf8 { hasher.combine(byte) }
  }
}
