/// A struct or enum for which direct coding is generated.
struct Model {
  struct Field: Equatable {
    /// The property, as it is written in code.
    var property: String
    /// The literal of the coding key's name.
    var literal: String
    var isOptional: Bool
    /// False for a constant with a value, which is written only.
    var isRead: Bool
  }

  /// A case of an enum.
  ///
  /// Its fields are its values, and their properties are its labels.
  struct Case: Equatable {
    /// The case, as it is written in code.
    var name: String
    /// The literal of the coding key's name.
    var literal: String
    var fields: [Field]
  }

  var name: String
  /// The token of the type's name.
  var token: Token
  /// The token of each field's property, or of each case's name.
  var places: [Token]
  /// The fields of a struct.
  var fields: [Field] = []
  /// The cases of an enum; nil for a struct.
  var cases: [Case]?
  var access: Access
  var availability: [String]
  var isNonisolated: Bool
  /// Whether the type's own declaration names the protocol.
  var conformsAlready: Bool

  var protocolName: String { cases == nil ? "DirectCoding" : "DirectEnum" }
}

extension Outline.Part {
  /// The protocol for which functions are generated.
  fileprivate var protocolName: String { kind == .enumeration ? "DirectEnum" : "DirectCoding" }
}

/// Finds the models of a file.
///
/// Types are looked up by the names they are declared with. Other files of the module are searched
/// for extensions of them.
struct ModelFinder {
  private let file: Outline
  private let others: [Outline]
  /// Whether the functions are for the file itself, where private properties can be set.
  private let isInFile: Bool

  init(_ file: Outline, others: [Outline], isInFile: Bool) {
    (self.file, self.others, self.isInFile) = (file, others, isInFile)
  }

  /// A struct or enum without functions, and why.
  struct LeftOut {
    var name: String
    var reason: Refusal
  }

  /// The models, and the types that are left out.
  ///
  /// Enums with raw values are neither: they are coded as these values.
  ///
  /// - Throws: A refusal if no struct or enum of the file is Codable.
  func models() throws(Refusal) -> (models: [Model], leftOut: [LeftOut]) {
    var models: [Model] = []
    var leftOut: [LeftOut] = []
    for part in file.parts where part.kind == .structure || part.kind == .enumeration {
      guard access(of: part) >= .internal, isCodable(part) else { continue }
      do {
        if let model = try model(part) { models.append(model) }
      } catch {
        leftOut.append(LeftOut(name: part.name, reason: error))
      }
    }
    if models.isEmpty, leftOut.isEmpty {
      throw Refusal(
        file.path, nil,
        "no struct, and no enum without raw values, names Codable here, except private ones")
    }
    return (models, leftOut)
  }

  private func extensions(of part: Outline.Part, in file: Outline) -> [Outline.Part] {
    file.parts.filter { $0.kind == .extending && $0.name == part.name }
  }

  private func isCodable(_ part: Outline.Part) -> Bool {
    part.isCodable || extensions(of: part, in: file).contains(where: \.isCodable)
  }

  /// The lowest access level of a type and the types around it.
  private func access(of part: Outline.Part) -> Access {
    var access = part.access
    for outer in file.parts where outer.kind != .extending {
      if part.name.hasPrefix(outer.name + ".") { access = min(access, outer.access) }
    }
    return access
  }
}

// MARK: - One struct

extension ModelFinder {
  /// The model of a type; nil for an enum with raw values.
  private func model(_ part: Outline.Part) throws(Refusal) -> Model? {
    let isEnum = part.kind == .enumeration
    if isEnum, part.inherited.contains(where: Self.rawTypes.contains) { return nil }
    let access = access(of: part)
    var members = try Members.parse(file.cursor(in: part), ofEnum: isEnum)
    if members.hasRawValues { return nil }
    try checkDeclaration(part)
    try check(members, of: part, in: file)
    for file in [file] + others {
      for addition in extensions(of: part, in: file) {
        let added = try Members.parse(file.cursor(in: addition))
        try check(added, of: part, in: file)
        members.keys = members.keys ?? added.keys
        if addition.inherited.contains(part.protocolName) {
          throw Refusal(
            file.path, addition.token,
            "\(part.name) conforms to \(part.protocolName) here; remove that")
        }
        if addition.isCodable, addition.isGenericExtension {
          throw Refusal(file.path, addition.token, "\(part.name) is Codable under a condition")
        }
      }
    }
    var model = Model(
      name: part.name, token: part.token, places: [], access: access,
      availability: part.availability, isNonisolated: part.isNonisolated,
      conformsAlready: part.inherited.contains(part.protocolName))
    if isEnum {
      model.places = members.cases.map(\.token)
      model.cases = try cases(of: members, part)
    } else {
      let coded = try fields(of: members, part)
      (model.places, model.fields) = (coded.map(\.token), coded.map(\.field))
    }
    return model
  }

  private static let rawTypes: Set = [
    "String", "Substring", "Character", "Int", "Int8", "Int16", "Int32", "Int64", "Int128", "UInt",
    "UInt8", "UInt16", "UInt32", "UInt64", "UInt128", "Double", "Float",
  ]

  private func checkDeclaration(_ part: Outline.Part) throws(Refusal) {
    func refuse(_ reason: String) -> Refusal { Refusal(file.path, part.token, reason) }
    if part.isConditional { throw refuse("\(part.name) is within #if") }
    let known = ["@available", "@frozen", "@usableFromInline", "@dynamicMemberLookup"]
    if let attribute = part.prefix.attributes.first(where: { text in
      !known.contains(where: text.hasPrefix)
    }) {
      throw refuse("\(part.name) has \(attribute), which may be a macro or an actor")
    }
    let inherited = part.inherited + extensions(of: part, in: file).flatMap(\.inherited)
    if !inherited.contains("Sendable"), !inherited.contains(part.protocolName) {
      throw refuse(
        "\(part.name) must name Sendable, which \(part.protocolName) requires, as a protocol")
    }
  }

  private func check(
    _ members: Members, of part: Outline.Part, in file: Outline
  ) throws(Refusal) {
    if let found = members.codable {
      throw Refusal(
        file.path, found.token,
        "\(part.name) has \(found.name) of its own; only what the compiler makes can be matched")
    }
    if let found = members.direct {
      throw Refusal(
        file.path, found.token,
        "\(part.name) has \(found.name) for \(part.protocolName) here; remove it")
    }
  }

  private func fields(
    of members: Members, _ part: Outline.Part
  ) throws(Refusal) -> [(field: Model.Field, token: Token)] {
    var fields: [(field: Model.Field, token: Token)] = []
    let keys =
      members.keys ?? members.properties.map { (name: $0.name, literal: nil, token: $0.token) }
    for key in keys {
      guard let property = members.properties.first(where: { $0.name == key.name }) else {
        throw Refusal(
          file.path, key.token, "CodingKeys.\(key.name) is not a property of \(part.name)")
      }
      fields.append((try field(property, key.literal, part), property.token))
    }
    guard !fields.isEmpty else {
      throw Refusal(file.path, part.token, "\(part.name) has no field to save")
    }
    return fields
  }

  private func field(
    _ property: Property, _ literal: String?, _ part: Outline.Part
  ) throws(Refusal) -> Model.Field {
    func refuse(_ reason: String) -> Refusal {
      Refusal(file.path, property.token, "\(part.name).\(property.name) \(reason)")
    }
    if let prefix = property.unknownPrefix { throw refuse("has \(prefix)") }
    guard isInFile || property.access >= .internal else {
      throw refuse(
        "is private, so that code in another file cannot set it; use --in-file, "
          + "or make it internal")
    }
    guard let type = property.type else { throw refuse("has no type that is written out") }
    if let reason = type.refusal { throw refuse("is \(reason)") }
    let code = property.name == "fields" ? "self.fields" : property.token.text
    return Model.Field(
      property: code, literal: literal ?? "\"\(property.name)\"",
      isOptional: property.type == .optional, isRead: !(property.isConstant && property.hasValue))
  }
}

// MARK: - Cases of an enum

extension ModelFinder {
  private func cases(
    of members: Members, _ part: Outline.Part
  ) throws(Refusal) -> [Model.Case] {
    guard !members.cases.isEmpty else {
      throw Refusal(file.path, part.token, "\(part.name) has no case to save")
    }
    if let token = members.keysOfCase {
      throw Refusal(file.path, token, "these may be coding keys of a case, which are not known")
    }
    var cases: [Model.Case] = []
    for found in members.cases {
      func refuse(_ reason: String) -> Refusal {
        Refusal(file.path, found.token, "\(part.name).\(found.token.name) \(reason)")
      }
      if let unknown = found.unknown { throw refuse("has \(unknown)") }
      let key = members.keys?.first { $0.name == found.token.name }
      guard members.keys == nil || key != nil else { throw refuse("is not one of CodingKeys") }
      var fields: [Model.Field] = []
      for (index, value) in found.values.enumerated() {
        if let reason = value.type.refusal { throw refuse("has \(reason)") }
        fields.append(
          Model.Field(
            property: value.label.map(label) ?? "",
            literal: "\"\(value.label?.name ?? "_\(index)")\"",
            isOptional: value.type == .optional, isRead: true))
      }
      cases.append(
        Model.Case(
          name: found.token.text, literal: key?.literal ?? "\"\(found.token.name)\"",
          fields: fields))
    }
    return cases
  }
}

/// A label as it is written in a call, where most keywords need no backticks.
private func label(_ token: Token) -> String {
  let isPlain = token.name.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" }
  return isPlain && !["inout", "var", "let"].contains(token.name) ? token.name : token.text
}

extension TypeForm {
  /// Why a value of the type is not coded; nil if it is.
  fileprivate var refusal: String? {
    switch self {
    case .tuple: "a tuple"
    case .function: "a function"
    case .doubleOptional: "an optional of an optional"
    case .plain, .optional: nil
    }
  }
}
