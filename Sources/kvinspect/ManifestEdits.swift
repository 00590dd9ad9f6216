import ArgumentParser
import LarderInspection

struct ManifestEdits: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "manifest",
    abstract: "List the edits of a MANIFEST: which tables and logs became live or obsolete.",
    discussion: "Opens no database. Of a directory, it reads the MANIFEST that CURRENT names.")

  @Argument(help: "A MANIFEST, or the directory of a database.", completion: .file())
  var path: String

  @OptionGroup var form: StyleOptions

  func run() throws {
    try form.report { style throws(InspectionError) in
      try Inspection.manifest(at: path, style: style)
    }
  }
}
