import ArgumentParser
import LarderInspection

struct Find: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List every put and removal of a key in the files of a database, newest first.",
    discussion: """
      A read finds the current one. Older ones stay until a compaction reaches them. SEQUENCE is \
      LevelDB's, and BYTE is the start of the batch or block in the file. In a database that is no \
      store, keys are bytes: text, or 0x and hex. The exit code is 3 if a part of the files cannot \
      be read.
      """)

  @OptionGroup var shared: SharedOptions
  @OptionGroup var key: KeyArgument

  @Flag(help: "The key is one of the database, in hex; then a damaged store can be searched, too.")
  var databaseKey = false

  func run() throws {
    try shared.form.report { style throws(InspectionError) in
      try Inspection.find(
        key.text, cache: key.cache, isDatabaseKey: databaseKey, in: shared.store,
        style: style)
    }
  }
}
