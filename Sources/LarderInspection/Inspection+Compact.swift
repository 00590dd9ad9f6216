import Larder
import LarderEngine

extension Inspection {
  /// Compacts the store in a directory, not a snapshot, and gives back the room of segments.
  ///
  /// - Throws: As ``sweep(_:now:style:to:)``. The store holds the same entries then.
  package static func compact(
    _ directory: String, style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) -> Outcome {
    let path = try FileAccess.directory(directory)
    _ = try identify(path)
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
      throw InspectionError(StoreError(error))
    }
    let after = try FileAccess.byteCount(ofFilesIn: path)
    switch style.format {
    case .table:
      output.write(style.isQuiet ? "" : path.escapedForTerminal + "\n\n")
      output.write("before   \(Amount.bytes(before))\nafter    \(Amount.bytes(after))\n")
    case .json, .jsonl:
      JSONValue.object([
        ("schemaVersion", reportVersion), ("store", .string(path)),
        ("bytesBefore", .integer(before)), ("bytesAfter", .integer(after)),
      ]).write(to: &output)
      output.write("\n")
    case .csv: throw InspectionError(.usage, "compact does not support csv")
    }
    return .fine
  }
}
