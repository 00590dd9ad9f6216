import Larder

extension Markup {
  /// A payload: JSON that can be folded, text, or bytes in hex; nothing if only its size is known.
  init(_ view: PayloadView) {
    switch view {
    case .json(let value):
      var tree = JSONMarkup()
      let body = tree.markup(of: value, name: nil)
      self = "<div class=json>\(body)</div>\n\(tree.note)"
    case .text(let text):
      let shown = text.prefix(JSONMarkup.mostCharacters)
      let isCut = shown.endIndex < text.endIndex
      self = "\(Markup(block: String(shown)))\(isCut ? JSONMarkup.cut : "")"
    case .hex(let bytes, let shown):
      var dump = ""
      PayloadView.hex(Array(bytes.prefix(shown))).write(to: &dump)
      let rest: Markup = bytes.count > shown ? JSONMarkup.cut : ""
      self = "\(Markup(block: dump))\(rest)"
    case .size, .nothing: self = ""
    }
  }

  /// Lines that are wider than the page can be scrolled, with the keyboard, too.
  private init(block text: String) {
    self = "<pre role=region aria-label=Payload tabindex=0>\(lines: text)</pre>\n"
  }
}

/// Writes a JSON document as lists that can be folded, up to a number of values.
private struct JSONMarkup {
  private static let mostValues = 5000
  /// Lists inside of so many others are folded at first.
  private static let openDepth = 2
  static let mostCharacters = 200_000
  static let cut: Markup = "<p class=note>The rest is not shown. Save the payload to see all.</p>\n"

  private var depth = 0
  private var values = 0
  private var characters = 0
  private var isCut = false

  var note: Markup { isCut ? Self.cut : "" }

  mutating func markup(of value: JSONValue, name: String?) -> Markup {
    let label: Markup = name.map { "<span class=key>\($0)</span>: " } ?? ""
    switch value {
    case .null: return "\(label)<span class=word>null</span>"
    case .bool(let value): return "\(label)<span class=word>\(value ? "true" : "false")</span>"
    case .number(let text): return "\(label)<span class=number>\(text)</span>"
    case .string(let text): return "\(label)<span class=string>\"\(shown(text))\"</span>"
    case .array(let elements):
      let count = Amount.text(elements.count)
      return list("\(label)[ ] <small>\(count)</small>", elements.map { (nil, $0) })
    case .object(let members):
      let count = Amount.text(members.count)
      return list("\(label){ } <small>\(count)</small>", members.map { ($0.name, $0.value) })
    }
  }

  private mutating func list(
    _ summary: Markup, _ members: [(name: String?, value: JSONValue)]
  ) -> Markup {
    guard !members.isEmpty else { return summary }
    let state: Markup = depth < Self.openDepth ? " open" : ""
    depth += 1
    defer { depth -= 1 }
    var items: Markup = ""
    for member in members {
      guard values < Self.mostValues, characters < Self.mostCharacters else {
        isCut = true
        break
      }
      values += 1
      items += "<li>\(markup(of: member.value, name: member.name))</li>\n"
    }
    return "<details\(state)><summary>\(summary)</summary><ul>\n\(items)</ul></details>"
  }

  /// The part of a string that is shown.
  private mutating func shown(_ text: String) -> String {
    let part = text.prefix(max(0, Self.mostCharacters - characters))
    characters += part.count
    if part.endIndex < text.endIndex { isCut = true }
    return String(part)
  }
}

/// The kinds of images that browsers show without running anything in them.
enum ImageKind: String {
  case png = "image/png"
  case jpeg = "image/jpeg"
  case gif = "image/gif"
  case webp = "image/webp"

  /// The kind of an image by its first bytes; nil for anything else.
  init?(_ bytes: [UInt8]) {
    func begins(_ start: [UInt8], at place: Int = 0) -> Bool {
      bytes.dropFirst(place).starts(with: start)
    }
    if begins([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
      self = .png
    } else if begins([0xFF, 0xD8, 0xFF]) {
      self = .jpeg
    } else if begins(Array("GIF87a".utf8)) || begins(Array("GIF89a".utf8)) {
      self = .gif
    } else if begins(Array("RIFF".utf8)), begins(Array("WEBP".utf8), at: 8) {
      self = .webp
    } else {
      return nil
    }
  }
}
