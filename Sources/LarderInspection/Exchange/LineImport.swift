import Foundation
import Larder
import LarderCoding
import LarderEngine

/// Adds the lines of an export to an import.
struct LineImport: ~Copyable {
  private var lines: LineReader

  /// Opens an export at `path`, or standard input for `-`.
  init(of path: String) throws(InspectionError) { lines = try LineReader(of: path) }

  /// Reads all lines, and shows the progress of that.
  ///
  /// - Throws: An ``InspectionError`` with the status `damaged`, which names the line, if a line is
  ///   not one of an export, or the last line is missing; `unsupported` for a later version; `io`.
  mutating func run(
    into store: inout StoreImport, _ progress: ProgressLine?
  ) throws(InspectionError) {
    try readHeading()
    while let bytes = try lines.next() {
      progress?.step { lines.share }
      let line = try members(of: bytes)
      if let count = line["records"]?.integer {
        guard count == store.recordCount else {
          throw lines.failure("the export has \(count) records; \(store.recordCount) were read")
        }
        guard try lines.next() == nil else { throw lines.failure("it is after the last line") }
        return
      }
      do {
        if let registration = line[ExportMember.registration] {
          try add(registration, named: try text(ExportMember.cache, in: line), to: &store)
        } else {
          try addRecord(line, to: &store)
        }
      } catch let error as InspectionError {
        throw error
      } catch StoreError.invalidArgument(let message) {
        throw lines.failure(message)
      } catch {
        throw InspectionError(error)
      }
    }
    throw lines.failure("the last line of the export is missing: it was cut off")
  }

  private mutating func readHeading() throws(InspectionError) {
    guard let bytes = try lines.next(),
      let version = try members(of: bytes)["larderExport"]?.integer
    else { throw lines.failure("it is not the first line of an export") }
    guard version == exportVersion else {
      throw InspectionError(
        .unsupported, "the export has version \(version); this version reads \(exportVersion)")
    }
  }

  private func members(of line: [UInt8]) throws(InspectionError) -> [String: JSONValue] {
    guard case .object(let members)? = JSONReader.read(line) else {
      throw lines.failure("it is not a JSON object")
    }
    return Dictionary(members.map { ($0.name, $0.value) }) { first, _ in first }
  }

  private func text(
    _ name: String, in line: [String: JSONValue]
  ) throws(InspectionError) -> String {
    guard case .string(let text)? = line[name] else {
      throw lines.failure("it has no text called \(name)")
    }
    return text
  }

  private func bytes(
    _ name: String, in line: [String: JSONValue]
  ) throws(InspectionError) -> [UInt8] {
    guard let bytes = Data(base64Encoded: try text(name, in: line)) else {
      throw lines.failure("\(name) is not Base64")
    }
    return Array(bytes)
  }
}

// MARK: - Caches

extension LineImport {
  private func add(
    _ json: JSONValue, named name: String, to store: inout StoreImport
  ) throws {
    guard case .object(let members) = json else {
      throw lines.failure("the registration is not a JSON object")
    }
    var text = ""
    // The id is that of the old store; the import gives the cache another one.
    JSONValue.object([("id", .integer(0))] + members.filter { $0.name != "id" }).write(to: &text)
    let registration: Registration
    do {
      registration = try JSONDecoder().decode(Registration.self, from: Data(text.utf8))
    } catch {
      throw lines.failure("the registration cannot be read: \(error)")
    }
    try store.add(registration, named: name)
  }
}

// MARK: - Records

extension LineImport {
  private func addRecord(
    _ line: [String: JSONValue], to store: inout StoreImport
  ) throws {
    let name = try text(ExportMember.cache, in: line)
    guard let registration = store.registration(ofCache: name) else {
      throw lines.failure("cache \(KeyForm.text(ofName: name)) has no line before this one")
    }
    let keyText = try text(ExportMember.key, in: line)
    let kind = KeyKind(code: registration.keyKind)
    guard let key = KeyForm.auto.bytes(of: keyText, kind: kind) else {
      throw lines.failure("\(keyText) is not a key of kind \(kind)")
    }
    let savedAt = try savedAt(in: line)
    guard let version = line[ExportMember.schemaVersion]?.integer,
      let schemaVersion = UInt32(exactly: version)
    else { throw lines.failure("\(ExportMember.schemaVersion) is not from 0 to \(UInt32.max)") }
    var record = ImportedRecord(
      coder: try coder(in: line), schemaVersion: schemaVersion, savedAt: savedAt, expiresAt: nil,
      payload: try bytes(ExportMember.payload, in: line))
    record.ownLifetime = try ownLifetime(in: line)
    record.expiresAt =
      if let member = line[ExportMember.expiresAtBits] {
        member.isNull ? nil : try date(ExportMember.expiresAtBits, in: line)
      } else {
        (record.ownLifetime?.lifetime ?? registration.lifetime).expiry(from: savedAt)
      }
    if line[ExportMember.validator] != nil {
      record.validator = Validator(try bytes(ExportMember.validator, in: line))
    }
    record.tags = try tags(in: line)
    try store.add(record, under: key, in: name)
  }

  private func savedAt(in line: [String: JSONValue]) throws(InspectionError) -> Date {
    if line[ExportMember.savedAtBits] != nil {
      return try date(ExportMember.savedAtBits, in: line)
    }
    do throws(InspectionError) {
      return try Moment.parse(try text(ExportMember.savedAt, in: line), from: Moment.now())
    } catch {
      throw lines.failure(error.description)
    }
  }

  private func date(
    _ name: String, in line: [String: JSONValue]
  ) throws(InspectionError) -> Date {
    let text = try text(name, in: line)
    guard text.hasPrefix("0x"), text.utf8.count == 18,
      let bits = UInt64(text.dropFirst(2), radix: 16)
    else { throw lines.failure("\(name) is not 0x and 16 digits") }
    return Date(timeIntervalSinceReferenceDate: Double(bitPattern: bits))
  }

  private func coder(in line: [String: JSONValue]) throws(InspectionError) -> UInt8 {
    if let number = line[ExportMember.coder]?.integer, let code = UInt8(exactly: number) {
      return code
    }
    let name = try text(ExportMember.coder, in: line)
    do throws(InspectionError) {
      return try PayloadFormat(called: name).rawValue
    } catch {
      throw lines.failure(error.description)
    }
  }

  private func ownLifetime(
    in line: [String: JSONValue]
  ) throws(InspectionError) -> OwnLifetime? {
    guard let member = line[ExportMember.lifetime] else { return nil }
    guard case .object(let members) = member,
      let fresh = members.first(where: { $0.name == ExportMember.fresh })?.value.limit,
      let stale = members.first(where: { $0.name == ExportMember.stale })?.value.limit,
      let lifetime = OwnLifetime(fresh: fresh, stale: stale)
    else {
      throw lines.failure("\(ExportMember.lifetime) has no fresh and stale time in seconds")
    }
    return lifetime
  }

  private func tags(in line: [String: JSONValue]) throws(InspectionError) -> [String] {
    guard let member = line[ExportMember.tags] else { return [] }
    guard case .array(let elements) = member else {
      throw lines.failure("\(ExportMember.tags) is not a list")
    }
    return try elements.map { element throws(InspectionError) in
      guard case .string(let tag) = element else {
        throw lines.failure("\(ExportMember.tags) has an element that is not a text")
      }
      return tag
    }
  }
}

extension JSONValue {
  /// The whole number that this is; nil if it is none.
  fileprivate var integer: Int? {
    if case .number(let text) = self { Int(text) } else { nil }
  }

  fileprivate var isNull: Bool {
    if case .null = self { true } else { false }
  }

  /// The number of seconds of a limit, infinity for null; nil if this is neither.
  fileprivate var limit: Double? {
    switch self {
    case .null: .infinity
    case .number(let text): Double(text)
    default: nil
    }
  }
}
