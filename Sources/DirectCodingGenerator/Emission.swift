/// The text of a generated file.
enum Emission {
  static let command = "swift package generate-direct-coding"

  static func isGenerated(_ text: String) -> Bool { text.hasPrefix("// Generated from ") }

  static func file(of models: [Model], from source: String) -> String {
    let isPublic = models.contains { $0.access >= .public }
    let isPackage = models.contains { $0.access == .package }
    let level = isPublic ? "public " : isPackage ? "package " : ""
    return """
      // Generated from \(source) by `\(command)`. Do not edit.

      \(level)import Larder

      \(models.map(code).joined(separator: "\n"))
      """
  }

  static func section(of models: [Model]) -> String {
    """
    \(Section.start)

    \(models.map(code).joined(separator: "\n"))
    \(Section.end)
    """
  }

  static func code(of model: Model) -> String {
    let isVisible = model.access > .internal
    let level = isVisible ? "\(min(model.access, .public).rawValue) " : ""
    func comment(_ text: String) -> String { isVisible ? "  /// \(text)\n" : "" }
    let attributes = model.availability.map { $0 + "\n" }.joined()
    let isolation = model.isNonisolated ? "nonisolated " : ""
    let conformance = model.conformsAlready ? "" : ": \(model.protocolName)"
    let (reader, writer) = ("inout FieldReader", "inout FieldWriter")
    let head =
      model.cases == nil
      ? "init(from fields: \(reader)) throws"
      : "init?(case name: String, from fields: \(reader)) throws"
    return """
      \(attributes)\(isolation)extension \(model.name)\(conformance) {
      \(comment("Reads the saved fields."))  \(level)\(head) {
      \(model.cases.map(reading) ?? model.fields.filter(\.isRead).map(reading).joined())  }

      \(comment("Writes the fields to be saved."))  \(level)func write(to fields: \(writer)) {
      \(model.cases.map(writing) ?? model.fields.map(writing).joined())  }
      }

      """
  }

  private static func reading(_ cases: [Model.Case]) -> String {
    let cases = cases.map { found in
      let values = found.fields.map { field in
        let label = field.property.isEmpty ? "" : "\(field.property): "
        return "\(label)try fields.\(field.isOptional ? "readIfPresent" : "read")(\(field.literal))"
      }
      var list = "(\(values.joined(separator: ", ")))"
      if values.isEmpty { list = "" }
      if values.count > 1 { list = "(\n        \(values.joined(separator: ",\n        ")))" }
      return "    case \(found.literal):\n      self = .\(found.name)\(list)\n"
    }
    return "    switch name {\n\(cases.joined())    default: return nil\n    }\n"
  }

  private static func writing(_ cases: [Model.Case]) -> String {
    let cases = cases.map { found in
      let names = found.fields.indices.map { "let value\($0)" }
      let pattern = names.isEmpty ? "" : "(\(names.joined(separator: ", ")))"
      let calls = found.fields.enumerated().map { index, field in
        var field = field
        field.property = "value\(index)"
        return "  " + writing(field)
      }
      return """
            case .\(found.name)\(pattern):
              fields.writeCase(\(found.literal))
        \(calls.joined())
        """
    }
    return "    switch self {\n\(cases.joined())    }\n"
  }

  private static func reading(_ field: Model.Field) -> String {
    let function = field.isOptional ? "readIfPresent" : "read"
    return "    \(field.property) = try fields.\(function)(\(field.literal))\n"
  }

  private static func writing(_ field: Model.Field) -> String {
    let function = field.isOptional ? "writeIfPresent" : "write"
    return "    fields.\(function)(\(field.property), as: \(field.literal))\n"
  }
}
