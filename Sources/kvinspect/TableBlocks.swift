import ArgumentParser
import LarderInspection

struct TableBlocks: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "table",
    abstract: "List the blocks of a table of LevelDB, or its entries.",
    discussion: "Opens no database. DECOMPRESSED is the size of a block without compression.")

  @Argument(help: "A file that ends in .ldb or .sst.", completion: .file())
  var file: String

  @OptionGroup var form: StyleOptions

  @Flag(help: "List every put and removal.")
  var entries = false

  func run() throws {
    try form.report { style throws(InspectionError) in
      try Inspection.table(at: file, listsEntries: entries, style: style)
    }
  }
}
