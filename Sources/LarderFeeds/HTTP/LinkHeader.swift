import Foundation
import HTTPTypes

/// A link of a `Link` header field (RFC 8288).
struct Link: Equatable {
  var target: String
  /// The relations, in lowercase.
  var relations: [String] = []
}

extension Link {
  /// Parses the links of a field; a part that is not a link ends the list.
  static func list(_ text: String) -> [Link] {
    var (links, rest): ([Link], Substring) = ([], text[...])
    while true {
      rest = rest.drop { $0 == "," || $0 == " " || $0 == "\t" }
      guard rest.first == "<", let end = rest.firstIndex(of: ">") else { return links }
      var link = Link(target: String(rest[rest.index(after: rest.startIndex)..<end]))
      rest = rest[rest.index(after: end)...]
      while let (name, value) = parameter(&rest) {
        // Of several relation types, only the first one counts.
        if name == "rel", link.relations.isEmpty {
          link.relations = value.lowercased().split(separator: " ").map(String.init)
        }
      }
      links.append(link)
    }
  }

  /// Takes a parameter off the beginning of a text; nil if none begins there.
  private static func parameter(_ rest: inout Substring) -> (name: String, value: String)? {
    let isBlank = { (character: Character) in character == " " || character == "\t" }
    var text = rest.drop(while: isBlank)
    guard text.first == ";" else { return nil }
    text = text.dropFirst().drop(while: isBlank)
    let name = text.prefix { !";,= \t".contains($0) }
    text = text[name.endIndex...].drop(while: isBlank)
    var value = ""
    if text.first == "=" {
      text = text.dropFirst().drop(while: isBlank)
      if text.first == "\"" {
        var isEscaped = false
        text = text.dropFirst()
        while let character = text.popFirst(), character != "\"" || isEscaped {
          isEscaped = character == "\\" && !isEscaped
          if !isEscaped { value.append(character) }
        }
      } else {
        value = String(text.prefix { !";, \t".contains($0) })
        text = text.dropFirst(value.count)
      }
    }
    rest = text
    return (name.lowercased(), value)
  }
}
