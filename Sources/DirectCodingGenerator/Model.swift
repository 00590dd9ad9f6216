/// A struct for which direct coding is generated.
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

  var name: String
  /// The token of the type's name.
  var token: Token
  /// The token of each field's property.
  var places: [Token]
  var fields: [Field]
  var access: Access
  var availability: [String]
  var isNonisolated: Bool
  /// Whether the struct's own declaration names the protocol.
  var conformsAlready: Bool
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

  /// A struct without functions, and why.
  struct LeftOut {
    var name: String
    var reason: Refusal
  }

  /// The models, and the structs that are left out.
  ///
  /// - Throws: A refusal if no struct of the file is Codable.
  func models() throws(Refusal) -> (models: [Model], leftOut: [LeftOut]) {
    var models: [Model] = []
    var leftOut: [LeftOut] = []
    for part in file.parts where part.kind == .structure {
      guard access(of: part) >= .internal, isCodable(part) else { continue }
      do {
        models.append(try model(part))
      } catch {
        leftOut.append(LeftOut(name: part.name, reason: error))
      }
    }
    if models.isEmpty, leftOut.isEmpty {
      throw Refusal(
        file.path, nil, "no struct here names Codable among its protocols, except private ones")
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
  private func model(_ part: Outline.Part) throws(Refusal) -> Model {
    let access = access(of: part)
    try checkDeclaration(part)
    var members = try Members.parse(file.cursor(in: part))
    try check(members, of: part, in: file)
    for file in [file] + others {
      for addition in extensions(of: part, in: file) {
        let added = try Members.parse(file.cursor(in: addition))
        try check(added, of: part, in: file)
        members.keys = members.keys ?? added.keys
        if addition.inherited.contains("DirectCoding") {
          throw Refusal(
            file.path, addition.token, "\(part.name) conforms to DirectCoding here; remove that")
        }
        if addition.isCodable, addition.isGenericExtension {
          throw Refusal(file.path, addition.token, "\(part.name) is Codable under a condition")
        }
      }
    }
    let coded = try fields(of: members, part)
    return Model(
      name: part.name, token: part.token, places: coded.map(\.token), fields: coded.map(\.field),
      access: access, availability: part.availability,
      isNonisolated: part.isNonisolated,
      conformsAlready: part.inherited.contains("DirectCoding"))
  }

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
    if !inherited.contains("Sendable"), !inherited.contains("DirectCoding") {
      throw refuse("\(part.name) must name Sendable, which DirectCoding requires, as a protocol")
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
        file.path, found.token, "\(part.name) has \(found.name) for DirectCoding here; remove it")
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
    switch property.type {
    case nil: throw refuse("has no type that is written out")
    case .tuple: throw refuse("is a tuple")
    case .function: throw refuse("is a function")
    case .doubleOptional: throw refuse("is an optional of an optional")
    case .plain, .optional: break
    }
    let code = property.name == "fields" ? "self.fields" : property.token.text
    return Model.Field(
      property: code, literal: literal ?? "\"\(property.name)\"",
      isOptional: property.type == .optional, isRead: !(property.isConstant && property.hasValue))
  }
}
