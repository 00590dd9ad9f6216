import Foundation
import LarderEngine

/// A store's directory as it was at one moment, in a private directory.
final class Snapshot {
  let directory: PrivateDirectory
  let source: String
  private let capture: StoreCapture
  /// How many bytes the logs had, before ``cutLogs()`` cut them.
  let logBytes: Int

  /// How the store's files came into it.
  var method: StoreCapture.Method { capture.method }
  var manifest: Manifest { capture.manifest }

  /// Takes a snapshot of the store in `source`, an absolute path without links.
  ///
  /// - Parameters:
  ///   - source: The store's directory.
  ///   - linking: Whether hard links are tried before copying.
  /// - Throws: As ``Inspection/init(at:now:linking:)``.
  init(of source: String, linking: Bool) throws(InspectionError) {
    self.source = source
    let (directory, canLink) = try Self.makeDirectory(for: source, linking: linking)
    self.directory = directory
    do {
      capture = try StoreCapture(
        of: source, into: directory.path, linking: canLink, files: SystemFiles())
    } catch {
      throw InspectionError(error)
    }
    logBytes = try FileAccess.names(in: directory.path).filter { $0.hasSuffix(".log") }
      .reduce(0) { $0 + (FileAccess.bytes(of: "\(directory.path)/\($1)") ?? 0) }
  }

  /// Ends the copies of the logs before the first thing in them that cannot be read.
  ///
  /// - Returns: What was found, in words: an end that was torn off by a power loss, or is still
  ///   being written, and damage.
  func cutLogs() throws(InspectionError) -> (torn: String?, damage: String?) {
    let survey: LogSurvey
    do {
      survey = try capture.cutLogs()
    } catch {
      throw InspectionError(error)
    }
    switch survey.finding {
    case .whole: return (nil, nil)
    case .torn(let index, let place):
      let log = survey.logs[index]
      let later = survey.logs[(index + 1)...].contains { $0.firstSequence != nil }
      let what = "\(source)/\(log.name) is torn at byte \(place)"
      guard place == 0 && log.firstSequence != nil || later else { return (what, nil) }
      return (nil, what + ", and what later logs hold cannot be used")
    case .damaged(_, _, let message):
      return (nil, message + "; what was written from there on is not shown")
    }
  }
}

// MARK: - Where it goes

extension Snapshot {
  /// A private directory that links to the store's files can be made in, or any other one.
  private static func makeDirectory(
    for source: String, linking: Bool
  ) throws(InspectionError) -> (PrivateDirectory, canLink: Bool) {
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
        return (directory, true)
      }
      any = any ?? directory
    }
    guard let any else {
      throw InspectionError(.io, "there is no place for a snapshot of \(source)")
    }
    return (any, false)
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
    let sample = names.first { $0.hasSuffix(".ldb") || $0.hasSuffix(".log") }
    guard let sample else { return true }
    do {
      let outcome = try SystemFiles().link("\(source)/\(sample)", as: "\(directory.path)/\(sample)")
      if outcome == .refused { return false }
    } catch {
      throw InspectionError(error)
    }
    try directory.empty()
    return true
  }
}
