/// Compares a generated file with what would be generated now.
struct Comparison {
  private let path: String
  private let source: String
  private let models: [Model]
  private let leftOut: [ModelFinder.LeftOut]
  private let found: Outline

  /// Compares the functions in `text`, which is at `path`, with the models of the file `source`.
  init(
    _ text: String, at path: String, with models: [Model],
    leavingOut leftOut: [ModelFinder.LeftOut],
    of source: String
  ) throws(Refusal) {
    (self.path, self.source, self.models, self.leftOut) = (path, source, models, leftOut)
    found = try Outline(of: text, path: path)
  }

  /// The differences from the text that is expected; none if only comments and white space differ.
  func differences(from expected: String) throws(Refusal) -> [Refusal] {
    let wanted = try Lexer.tokens(of: expected, path: path).map(\.text)
    guard wanted != found.tokens.map(\.text) else { return [] }
    let differences = differences()
    if !differences.isEmpty { return differences }
    let changed = zip(wanted, found.tokens).first { $0 != $1.text }?.1
    return [
      Refusal(
        path, changed ?? found.tokens.last, "this is not what is generated from \(source) now")
    ]
  }

  private func differences() -> [Refusal] {
    var differences: [Refusal] = []
    for model in models {
      guard let part = found.parts.first(where: { $0.name == model.name }) else {
        differences.append(refusal(model.token, "\(model.name) is missing in \(path)"))
        continue
      }
      let calls = Calls.calls(in: found.cursor(in: part))
      let difference =
        model.cases.map { self.difference(model, $0, calls) } ?? self.difference(model, calls)
      if let difference {
        differences.append(difference)
      }
    }
    for part in found.parts where !models.contains(where: { $0.name == part.name }) {
      let reason = leftOut.first { $0.name == part.name }?.reason
      differences.append(
        Refusal(
          path, part.token,
          reason.map { "\(part.name) is left out now: \($0.reason)" }
            ?? "\(source) has no type \(part.name) that is Codable"))
    }
    return differences
  }

  private func refusal(_ token: Token?, _ reason: String) -> Refusal {
    Refusal(source, token, reason)
  }

  /// The first case of an enum that was added or removed.
  private func difference(_ model: Model, _ cases: [Model.Case], _ calls: Calls) -> Refusal? {
    for (index, wanted) in cases.enumerated()
    where !calls.cases.contains(where: { $0.text == wanted.literal }) {
      let place = model.places[index]
      return refusal(place, "\(model.name).\(place.name) is missing in \(path)")
    }
    return calls.cases.first { found in !cases.contains { $0.literal == found.text } }.map {
      found in
      Refusal(
        path, found,
        "\(found.text) is not the name of a case of \(model.name) in \(source) any more")
    }
  }

  /// The first difference of a struct.
  private func difference(_ model: Model, _ calls: Calls) -> Refusal? {
    func refuse(_ index: Int, _ reason: String) -> Refusal {
      refusal(model.places[index], "\(model.name).\(model.places[index].name) \(reason) \(path)")
    }
    for (index, field) in model.fields.enumerated() {
      guard let place = calls.written.firstIndex(where: { $0.property == field.property }) else {
        return refuse(index, "is missing in")
      }
      let call = calls.written[place]
      if call.literal != field.literal { return refuse(index, "has another name in") }
      if call.isOptional != field.isOptional {
        return refuse(index, "is \(field.isOptional ? "" : "not ")optional, unlike in")
      }
    }
    for call in calls.written + calls.read
    where !model.fields.contains(where: { $0.property == call.property }) {
      return Refusal(
        path, call.token,
        "\(model.name).\(call.token.name) is not a saved property in \(source) any more")
    }
    for (index, (field, call)) in zip(model.fields, calls.written).enumerated()
    where field.property != call.property {
      return refuse(index, "has another place in")
    }
    let read = model.fields.indices.filter { model.fields[$0].isRead }
    for (index, field) in model.fields.enumerated()
    where !field.isRead && calls.read.contains(where: { $0.property == field.property }) {
      return refuse(index, "is a constant with a value, unlike in")
    }
    for (index, call) in zip(read, calls.read) where model.fields[index].property != call.property {
      return refuse(index, "is read in another place in")
    }
    if let missing = read.dropFirst(calls.read.count).first {
      return refuse(missing, "is not read in")
    }
    return nil
  }
}

/// The calls that read and write fields, as they are found in an extension.
private struct Calls {
  struct Call {
    var property: String
    var literal: String
    var isOptional: Bool
    var token: Token
  }

  var read: [Call] = []
  var written: [Call] = []
  /// The literals of the cases that are written.
  var cases: [Token] = []

  static func calls(in cursor: Cursor) -> Calls {
    var calls = Calls()
    let tokens = cursor.tokens[cursor.at..<cursor.end]
    for index in tokens.indices.dropLast(4) where tokens[index].text == "fields" {
      guard tokens[index + 1].text == ".", let close = tokens[index + 3].partner else { continue }
      let function = tokens[index + 2].text
      let inner = tokens[(index + 4)..<close]
      guard let literal = inner.last, literal.kind == .string else { continue }
      let isOptional = function.hasSuffix("IfPresent")
      if function == "writeCase" {
        calls.cases.append(literal)
      } else if function.hasPrefix("write") {
        let property = inner.prefix { $0.text != "," }
        guard let token = property.last else { continue }
        calls.written.append(
          Call(
            property: property.map(\.text).joined(), literal: literal.text,
            isOptional: isOptional, token: token))
      } else if function.hasPrefix("read") {
        // `self.name = try fields.read("name")`
        let target = tokens[..<index].dropLast(2).suffix(3)
        guard let token = target.last else { continue }
        let isMember = target.dropLast().last?.text == "."
        calls.read.append(
          Call(
            property: isMember ? target.map(\.text).joined() : token.text, literal: literal.text,
            isOptional: isOptional, token: token))
      }
    }
    return calls
  }
}
