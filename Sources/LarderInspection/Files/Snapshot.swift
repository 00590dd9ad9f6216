// How a store that may be open in another process is read without touching it.
//
// Nothing in the store's directory is opened for writing, and neither lock file is locked or opened
// by way of a database. Instead a private directory gets, in this order:
//
//   1. every table and every log of a first listing, as hard links, so that none can go away;
//   2. in place of the links to logs copies of them, made in ascending order: a later log holds
//      later writes, so what the copies hold is everything up to some moment;
//   3. a copy of CURRENT and of the MANIFEST that it names. They are later than the logs: what the
//      MANIFEST no longer takes from a log it has in a table;
//   4. the tables that have appeared since.
//   5. Then tables that the MANIFEST does not name are taken out again. That must be: they are
//      still being written, and LevelDB, opening the snapshot, would give their numbers to tables
//      of its own. It empties the file of that name first, which by the link is the store's.
//
// When the MANIFEST names a table that has been deleted meanwhile, or a log that has been begun, or
// CURRENT has changed, it is done over. Where links are refused (another file system, read-only
// media) tables are copied too. The tables that stay are safe to share: LevelDB never writes to a
// table that is in a MANIFEST, and numbers new ones above them all.

import Foundation
import LarderEngine

/// How a store's files came into a snapshot.
package enum SnapshotMethod: String, Sendable {
  /// Tables are hard links to the store's.
  case links
  /// Links were refused, so everything was copied.
  case copies
}

/// A copy of a store's directory as it was at one moment, in a private directory.
final class Snapshot {
  /// How often it is tried: each time a table was deleted between being named and being linked.
  private static let tries = 50

  private(set) var method: SnapshotMethod
  let directory: PrivateDirectory
  private(set) var manifest = Manifest()
  private(set) var logBytes = 0

  let source: String

  /// Takes a snapshot of the store in `source`, an absolute path without links.
  ///
  /// - Parameters:
  ///   - source: The store's directory.
  ///   - linking: Whether hard links are tried before copying.
  /// - Throws: As ``Inspection/init(at:now:linking:)``.
  init(of source: String, linking: Bool) throws(InspectionError) {
    self.source = source
    (directory, method) = try Self.makeDirectory(for: source, linking: linking)
    var seen: [String]?
    for _ in 0..<Self.tries {
      switch try capture() {
      case .whole: return
      case .changed: seen = nil
      case .missing(let file, let names):
        // Nobody works on the store, and still the file is not there.
        if seen == names {
          throw InspectionError(.damaged, "\(file) is missing in \(source)")
        }
        seen = names
      }
      try directory.empty()
    }
    throw InspectionError(.unavailable, "\(source) changes faster than it can be captured")
  }

  private enum Capture {
    case whole
    /// CURRENT, or the MANIFEST that it named, is another one now.
    case changed
    case missing(file: String, names: [String])
  }

  private func capture() throws(InspectionError) -> Capture {
    let names = try FileAccess.names(in: source)
    let tables = names.filter(Self.isTable)
    let logs = names.filter { $0.hasSuffix(".log") }
    for name in tables { try transfer(name) }
    try transferLogs(logs)

    guard let manifest = try copyManifest() else { return .changed }
    self.manifest = manifest

    let later = try FileAccess.names(in: source)
    for name in later where Self.isTable(name) && !tables.contains(name) { try transfer(name) }
    let missing = try keepTables(of: manifest)
    if let missing { return .missing(file: "table \(missing)", names: later) }
    // A log that was begun meanwhile; what it took the place of may be neither here nor in a table.
    let log = LogSurvey.name(of: manifest.logNumber)
    if manifest.logNumber > 0, FileAccess.bytes(of: "\(directory.path)/\(log)") == nil {
      return .missing(file: log, names: later)
    }
    return .whole
  }

  /// Copies CURRENT and the MANIFEST that it names; nil when it names another one afterwards.
  private func copyManifest() throws(InspectionError) -> Manifest? {
    guard let current = try FileAccess.read("\(source)/CURRENT") else { return nil }
    let name = String(decoding: current.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    guard name.hasPrefix("MANIFEST-"), !name.contains("/") else {
      throw InspectionError(.damaged, "\(source)/CURRENT names no MANIFEST")
    }
    let copy = "\(directory.path)/\(name)"
    let isThere = try FileAccess.copy("\(source)/\(name)", to: copy)
    guard try FileAccess.read("\(source)/CURRENT") == current else { return nil }
    guard isThere else { throw InspectionError(.damaged, "\(source)/\(name) is missing") }
    try FileAccess.create("\(directory.path)/CURRENT", with: current)
    guard let manifest = try FileAccess.read(copy).flatMap({ Manifest($0) }) else {
      throw InspectionError(.damaged, "\(source)/\(name) is damaged")
    }
    return manifest
  }

  /// Leaves only the tables that the MANIFEST names; answers one of those that are not there.
  private func keepTables(of manifest: Manifest) throws(InspectionError) -> UInt64? {
    var present: Set<UInt64> = []
    for name in try FileAccess.names(in: directory.path) where Self.isTable(name) {
      let path = "\(directory.path)/\(name)"
      guard let table = manifest.tables[Self.number(name)] else {
        try directory.remove(name)
        continue
      }
      if method == .copies, FileAccess.bytes(of: path) != table.bytes {
        // It was still being written when it was copied; by now it is whole.
        try directory.remove(name)
        try transfer(name)
      }
      if FileAccess.bytes(of: path) != nil { present.insert(Self.number(name)) }
    }
    return manifest.tables.keys.filter { !present.contains($0) }.min()
  }

  private func transfer(_ name: String) throws(InspectionError) {
    let (old, new) = ("\(source)/\(name)", "\(directory.path)/\(name)")
    if method == .links {
      if FileAccess.link(old, as: new) { return }
      method = .copies
    }
    _ = try FileAccess.copy(old, to: new)
  }

  private func transferLogs(_ logs: [String]) throws(InspectionError) {
    logBytes = 0
    if method == .links { for name in logs { try transfer(name) } }
    for name in logs.sorted(by: { Self.number($0) < Self.number($1) }) {
      let place = "\(directory.path)/\(name)"
      let origin = FileAccess.bytes(of: place) == nil ? "\(source)/\(name)" : place
      guard try FileAccess.copy(origin, to: place + ".copy") else { continue }
      try FileAccess.move(place + ".copy", to: place)
      logBytes += FileAccess.bytes(of: place) ?? 0
    }
  }

  private static func isTable(_ name: String) -> Bool {
    name.hasSuffix(".ldb") || name.hasSuffix(".sst")
  }

  /// The number that a table or log is named by.
  private static func number(_ name: String) -> UInt64 { UInt64(name.prefix { $0 != "." }) ?? 0 }
}

// MARK: - Where it goes

extension Snapshot {
  /// A private directory that links to the store's files can be made in, or any other one.
  private static func makeDirectory(
    for source: String, linking: Bool
  ) throws(InspectionError) -> (PrivateDirectory, SnapshotMethod) {
    let temporary = FileManager.default.temporaryDirectory.path(percentEncoded: false)
    let parent = (source as NSString).deletingLastPathComponent
    let places = [(temporary, "kvinspect-"), ("/tmp", "kvinspect-"), (parent, ".kvinspect-")]
    var any: PrivateDirectory?
    for (place, prefix) in places where !isInside(place, source) {
      let isSameDevice = FileAccess.device(of: place) == FileAccess.device(of: source)
      guard linking && isSameDevice || any == nil,
        let directory = PrivateDirectory(in: place, named: prefix)
      else { continue }
      if linking, isSameDevice, try canLink(from: source, into: directory) {
        return (directory, .links)
      }
      any = any ?? directory
    }
    guard let any else {
      throw InspectionError(.io, "there is no place for a snapshot of \(source)")
    }
    return (any, .copies)
  }

  private static func isInside(_ place: String, _ source: String) -> Bool {
    let real = realpath(place, nil).map { path in
      defer { free(path) }
      return String(cString: path)
    }
    return ((real ?? place) + "/").hasPrefix(source + "/")
  }

  /// Tries it with one of the files that are to be linked.
  private static func canLink(
    from source: String, into directory: PrivateDirectory
  ) throws(InspectionError) -> Bool {
    let names = try FileAccess.names(in: source)
    let sample = names.first { isTable($0) || $0.hasSuffix(".log") }
    guard let sample, FileAccess.link("\(source)/\(sample)", as: "\(directory.path)/\(sample)")
    else {
      return sample == nil
    }
    try directory.empty()
    return true
  }
}
