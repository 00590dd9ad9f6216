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
    let conformance = model.conformsAlready ? "" : ": DirectCoding"
    let (reader, writer) = ("inout FieldReader", "inout FieldWriter")
    return """
      \(attributes)\(isolation)extension \(model.name)\(conformance) {
      \(comment("Reads the saved fields."))  \(level)init(from fields: \(reader)) throws {
      \(model.fields.filter(\.isRead).map(reading).joined())  }

      \(comment("Writes the fields to be saved."))  \(level)func write(to fields: \(writer)) {
      \(model.fields.map(writing).joined())  }
      }

      """
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
