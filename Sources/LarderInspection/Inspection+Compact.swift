import Larder

extension Inspection {
  /// Compacts the store in a directory, not a snapshot, and gives back the room of segments.
  ///
  /// - Throws: As ``sweep(_:now:style:)``. The store holds the same entries then.
  package static func compact(
    _ directory: String, style: Style
  ) throws(InspectionError) -> Report {
    let path = try FileAccess.directory(directory)
    _ = try identify(path)
    try style.expectNoCSV("compact does")
    let before = try FileAccess.byteCount(ofFilesIn: path)
    var options = Store.Options().engineOptions
    options.createIfMissing = false
    // So that a collection in the background does not begin first.
    options.collectsInBackground = false
    do {
      let engine = try LevelDBEngine(at: path, options: options)
      try engine.compact(EngineRange())
      try engine.collectSegments(.complete)
      try engine.close()
    } catch {
      throw InspectionError(error)
    }
    let after = try FileAccess.byteCount(ofFilesIn: path)
    return Report(
      style: style, title: path.escapedForTerminal,
      sections: [
        .facts([
          .init("before", Amount.bytes(before)), .init("after", Amount.bytes(after)),
        ])
      ],
      members: [
        ("schemaVersion", reportVersion), ("store", .string(path)),
        ("bytesBefore", .integer(before)), ("bytesAfter", .integer(after)),
      ], isOneLine: true)
  }
}
