import Foundation
import LarderInspection

/// The file with the rows of the list that was shown last, in the user's folder for caches.
enum LastList {
  private static let name = "kvinspect"

  /// The folder; nil if the user has none.
  private static var folder: String? {
    let environment = ProcessInfo.processInfo.environment
    if let caches = environment["XDG_CACHE_HOME"], caches.hasPrefix("/") {
      return "\(caches)/\(name)"
    }
    return environment["HOME"].flatMap { $0.hasPrefix("/") ? "\($0)/.cache/\(name)" : nil }
  }

  /// Numbers the rows of a report; nil if they are not shown on a terminal, or not to be kept.
  static func numbers(for form: StyleOptions) -> RowNumbers? {
    guard Terminal.ofOutput != nil, form.format == .table, !form.redact, !form.quiet, folder != nil
    else { return nil }
    return RowNumbers()
  }

  /// Keeps the rows, readable by the user only.
  static func keep(_ rows: ShownRows) {
    guard let folder else { return }
    do {
      try rows.keep(in: folder)
    } catch {
      printMessage("the numbers of the rows cannot be kept in \(folder): \(error)")
    }
  }

  /// The row that a text such as `#3` stands for; nil for any other text.
  static func row(_ text: String, of store: String) throws(InspectionError) -> ShownRows.Row? {
    guard ShownRows.number(text) != nil else { return nil }
    var shown: ShownRows?
    if let folder { shown = try ShownRows(keptIn: folder) }
    return try ShownRows.row(text, of: store, in: shown)
  }
}
