import Foundation
import Larder

/// Adds the lines of an export to an import.
///
/// It takes no line that an export of this version could not have, because a part of it may be
/// damaged. Members may be missing where people who write lines need not know them.
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
      _ = progress?.step { lines.share }
      let line = try members(of: bytes)
      if let count = line[ExportMember.records]?.integer {
        try checkMembers(of: line, in: ExportMember.ofEnd)
        guard (line[ExportMember.leftOut].map { $0.integer ?? -1 } ?? 0) >= 0 else {
          throw lines.failure("\(ExportMember.leftOut) is not a count")
        }
        guard count == store.recordCount else {
          throw lines.failure("the export has \(count) records; \(store.recordCount) were read")
        }
        guard try lines.next() == nil else { throw lines.failure("it is after the last line") }
        return
      }
      do {
        if let registration = line[ExportMember.registration] {
          try checkMembers(of: line, in: ExportMember.ofCache)
          try add(registration, named: try text(ExportMember.cache, in: line), to: &store)
        } else {
          try checkMembers(of: line, in: ExportMember.ofRecord)
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
    let line = try lines.next().map { bytes throws(InspectionError) in try members(of: bytes) }
    guard let line, let version = line[ExportMember.version]?.integer else {
      throw lines.failure("it is not the first line of an export")
    }
    guard version == exportVersion else {
      throw InspectionError(
        .unsupported, "the export has version \(version); this version reads \(exportVersion)")
    }
    try checkMembers(of: line, in: ExportMember.ofHeading)
  }

  private func members(of line: [UInt8]) throws(InspectionError) -> [String: JSONValue] {
    guard case .object(let members)? = JSONReader.read(line) else {
      throw lines.failure("it is not a JSON object")
    }
    if let name = JSONValue.object(members).repeatedMember {
      throw lines.failure("it has two members called \(name)")
    }
    return Dictionary(members.map { ($0.name, $0.value) }) { first, _ in first }
  }

  private func checkMembers(
    of line: [String: JSONValue], in known: Set<String>
  ) throws(InspectionError) {
    guard let name = line.keys.filter({ !known.contains($0) }).min() else { return }
    throw lines.failure("it has an unknown member called \(name)")
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
    guard let bytes = JSONValue.bytes(ofBase64: try text(name, in: line)) else {
      throw lines.failure("\(name) is not Base64")
    }
    return bytes
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
    if let member = members.first(where: { !Registration.memberNames.contains($0.name) }) {
      throw lines.failure("the registration has an unknown member called \(member.name)")
    }
    var text = ""
    // The id comes from the old store; the import gives the cache another one.
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
    guard let key = KeyForm.auto.bytes(of: keyText, kind: kind), isWritten(keyText, key, kind)
    else {
      throw lines.failure("\(keyText.shortened) is not a key of kind \(kind)")
    }
    let savedAt = try savedAt(in: line)
    guard let version = line[ExportMember.schemaVersion]?.integer,
      let schemaVersion = UInt32(exactly: version)
    else { throw lines.failure("\(ExportMember.schemaVersion) is not from 0 to \(UInt32.max)") }
    var record = ImportedRecord(
      coder: try coder(in: line), schemaVersion: schemaVersion, savedAt: savedAt, expiresAt: nil,
      payload: try bytes(ExportMember.payload, in: line))
    record.ownLifetime = try ownLifetime(in: line)
    if line[ExportMember.slidesUntilBits] != nil {
      record.slidesUntil = try date(ExportMember.slidesUntilBits, in: line)
    }
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

  /// Whether an export may write a key as this text.
  private func isWritten(_ text: String, _ key: [UInt8], _ kind: KeyKind) -> Bool {
    switch kind {
    case .integer: text.hasPrefix("0x") || KeyForm.auto.text(of: key, kind: kind) == text
    case .bytes: KeyForm.bytes(ofHex: text) != nil
    default: true
    }
  }

  private func savedAt(in line: [String: JSONValue]) throws(InspectionError) -> Date {
    if line[ExportMember.savedAtBits] != nil {
      return try date(ExportMember.savedAtBits, in: line)
    }
    let text = try text(ExportMember.savedAt, in: line)
    guard let date = Moment.date(text) else {
      throw lines.failure("\(text) is not a valid time, such as 2026-01-31T12:00:00Z")
    }
    return date
  }

  private func date(
    _ name: String, in line: [String: JSONValue]
  ) throws(InspectionError) -> Date {
    let text = try text(name, in: line)
    guard let bytes = KeyForm.bytes(ofHex: text), bytes.count == 8 else {
      throw lines.failure("\(name) is not 0x and 16 digits")
    }
    let bits = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    return Date(timeIntervalSinceReferenceDate: Double(bitPattern: bits))
  }

  private func coder(in line: [String: JSONValue]) throws(InspectionError) -> UInt8 {
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
  /// The name that two members of an object in this document have; nil if there is none.
  fileprivate var repeatedMember: String? {
    switch self {
    case .object(let members):
      // Readers sort them.
      for (one, next) in zip(members, members.dropFirst()) where one.name == next.name {
        return one.name
      }
      for (_, value) in members {
        if let name = value.repeatedMember { return name }
      }
    case .array(let elements):
      for element in elements {
        if let name = element.repeatedMember { return name }
      }
    default: break
    }
    return nil
  }

  /// This as a whole number; nil if it is not one.
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
    case .number(let text): Double(text).flatMap { $0.isFinite ? $0 : nil }
    default: nil
    }
  }
}
