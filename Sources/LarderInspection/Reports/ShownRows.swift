import Foundation
import Larder
import Synchronization

/// The records of the list that a terminal showed last, so that `#3` is the third of them.
///
/// A key is remembered, not its place: `#3` is the same record when others have come or gone.
package struct ShownRows: Codable, Sendable, Equatable {
  package struct Row: Codable, Sendable, Equatable {
    /// The cache as commands take it.
    package var cache: String
    /// The key as `0x` and hex.
    package var key: String

    /// The key in a form in which commands take keys.
    package func text(in form: KeyForm) -> String {
      // Every other form takes hex, too.
      guard form == .base64, let bytes = KeyForm.bytes(ofHex: key) else { return key }
      return Data(bytes).base64EncodedString()
    }
  }

  /// The path of the store.
  package var store: String
  package var rows: [Row] = []

  fileprivate init(of store: String) { self.store = store }

  /// Reads the rows that were kept in a folder; nil if there are none, or not ones of this version.
  package init?(keptIn folder: String) throws(InspectionError) {
    guard let bytes = try FileAccess.read("\(folder)/\(Self.fileName)", limit: Self.mostFileBytes)
    else { return nil }
    do {
      self = try JSONDecoder().decode(Self.self, from: Data(bytes))
    } catch {
      return nil
    }
  }

  private static let fileName = "rows"
  // `RowNumbers` keeps 1 MiB of names and keys; JSON escapes some characters of names.
  private static let mostFileBytes = 8 << 20

  /// Keeps the rows in a folder, which is created with its parents, readable by the user only.
  package func keep(in folder: String) throws {
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    try SystemFiles().replace(
      "\(folder)/\(Self.fileName)", with: Array(JSONEncoder().encode(self)))
  }

  /// The number that a text such as `#3` stands for; nil for any other text.
  package static func number(_ text: String) -> Int? {
    guard text.utf8.first == UInt8(ascii: "#") else { return nil }
    let digits = text.utf8.dropFirst()
    guard digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
      return nil
    }
    return Int(text.dropFirst())
  }

  /// The row that a text such as `#3` stands for, in a store.
  ///
  /// - Parameters:
  ///   - text: What was given as a key.
  ///   - store: The store's directory, by any path.
  ///   - shown: What was shown last; nil if that is not known.
  /// - Returns: The row; nil if the text does not stand for one.
  /// - Throws: An ``InspectionError`` with the status `usage` if the last list has no such row, or
  ///   was one of another store; `unavailable` if there is no store.
  package static func row(
    _ text: String, of store: String, in shown: ShownRows?
  ) throws(InspectionError) -> Row? {
    guard let number = number(text) else { return nil }
    let path = try FileAccess.directory(store)
    guard let shown, shown.store == path else {
      throw InspectionError(
        .usage, "no list of \(path) was shown last: \(text) is a row of ls or top on a terminal")
    }
    guard shown.rows.indices.contains(number - 1) else {
      throw InspectionError(
        .usage, "the last list had \(Amount.text(shown.rows.count)) numbered rows, and no \(text)")
    }
    return shown.rows[number - 1]
  }
}

extension InspectionError {
  /// The error for a row of another cache than the named one.
  package init(of row: String, isInCache cache: String) {
    self.init(.usage, "\(row) is in cache \(cache)")
  }
}

/// Numbers the rows of a list, and remembers the first ones.
package final class RowNumbers: Sendable {
  private static let mostRows = 1000
  private static let mostBytes = 1 << 20

  private let state = Mutex<(shown: ShownRows?, bytes: Int)>((nil, 0))

  package init() {}

  /// The rows so far; nil before the first.
  package var shown: ShownRows? { state.withLock { $0.shown } }

  /// The number of the next row, which has a record; nil if it is remembered no more.
  func number(_ found: FoundRecord, of store: String) -> Int? {
    state.withLock { state in
      var shown = state.shown ?? ShownRows(of: store)
      let row = ShownRows.Row(cache: found.cache.label, key: KeyForm.hex(found.key))
      let bytes = state.bytes + row.cache.utf8.count + row.key.utf8.count
      guard shown.rows.count < Self.mostRows, bytes <= Self.mostBytes else { return nil }
      shown.rows.append(row)
      state = (shown, bytes)
      return shown.rows.count
    }
  }
}
