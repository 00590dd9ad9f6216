// Prints the public declarations of a module from its symbol graphs, one per line, sorted: the path
// of a declaration with its text, and the protocols that a type conforms to.
//
// usage: swift Scripts/api.swift FILE...

import Foundation

struct Graph: Decodable {
  struct Symbol: Decodable {
    struct Identifier: Decodable { let precise: String }
    struct Fragment: Decodable { let spelling: String }

    let identifier: Identifier
    let pathComponents: [String]
    let declarationFragments: [Fragment]?
  }

  struct Relationship: Decodable {
    let kind: String
    let source: String
    let target: String
    let targetFallback: String?
  }

  let symbols: [Symbol]
  let relationships: [Relationship]
}

var lines: Set<String> = []
for path in CommandLine.arguments.dropFirst() {
  let graph = try JSONDecoder().decode(Graph.self, from: Data(contentsOf: URL(filePath: path)))
  var names: [String: String] = [:]
  for symbol in graph.symbols {
    names[symbol.identifier.precise] = symbol.pathComponents.joined(separator: ".")
    // What a type has from the extensions of protocols of other modules.
    guard !symbol.identifier.precise.contains("::SYNTHESIZED::") else { continue }
    let text = (symbol.declarationFragments ?? []).map(\.spelling).joined()
      .split(whereSeparator: \.isWhitespace).joined(separator: " ")
    lines.insert("\(symbol.pathComponents.joined(separator: ".")): \(text)")
  }
  for relationship in graph.relationships where relationship.kind == "conformsTo" {
    guard let type = names[relationship.source] else { continue }
    let conformed = names[relationship.target] ?? relationship.targetFallback ?? relationship.target
    lines.insert("\(type): conforms to \(conformed)")
  }
}
for line in lines.sorted() { print(line) }
