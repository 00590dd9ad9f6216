import ArgumentParser
import LarderInspection

struct Verify: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Check everything: logs, tables, records, notes of what expires.",
    discussion: "Names the cache and key of each problem. Exits with 3 if something is damaged.")

  @OptionGroup var shared: SharedOptions

  func run() throws {
    try shared.report { inspection, style throws(InspectionError) in
      try inspection.verify(style: style)
    }
  }
}

struct Files: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List the files of a database, with their kind, level and size.",
    discussion: """
      Opens no database, so it works on any LevelDB database, however damaged. The exit code is 3 \
      if a live file is missing, or no intact MANIFEST says which files are live.
      """)

  @Argument(
    help: "The directory of a store or of another LevelDB database.", completion: .directory)
  var directory: String

  @OptionGroup var form: StyleOptions

  func run() throws {
    try form.report { style throws(InspectionError) in
      try Inspection.files(in: directory, style: style)
    }
  }
}

struct Log: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "wal",
    abstract: "List the batches of write-ahead logs, or their rows.",
    discussion: """
      Opens no database. Of a directory, it reads all logs in the order in which they were written.
      """)

  @Argument(help: "A log, or the directory of a database.", completion: .file())
  var path: String

  @OptionGroup var form: StyleOptions

  @Flag(help: "List every put and removal.")
  var entries = false

  func run() throws {
    try form.report { style throws(InspectionError) in
      try Inspection.logs(at: path, listsEntries: entries, style: style)
    }
  }
}

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

struct Diff: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List the entries that two stores or backups do not have in common.",
    usage: "kvinspect diff <store> <other> [<options>]",
    discussion: "The exit code is 1 if there are any.")

  @OptionGroup var shared: SharedOptions

  @Argument(help: "The directory of the other store.", completion: .directory)
  var other: String

  @Option(help: "Only this cache: its name, or # and its number.")
  var cache: String?

  func run() throws {
    try shared.report { inspection, style throws(InspectionError) in
      let other = try inspection.another(at: other, key: try shared.key)
      return try inspection.differences(
        from: other, inCache: cache, style: style)
    }
  }
}

struct Digest: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Write a digest of all records, which is equal for stores with equal records.",
    discussion: """
      It covers what export writes of each record, and does not depend on files, the ids of caches \
      or the order of saves. It is not cryptographic (FNV-1a, 128 bits). With --quiet, only the \
      total is written. In csv and jsonl the row without a cache is the total.
      """)

  @OptionGroup var shared: SharedOptions
  @OptionGroup var records: RecordOptions

  func run() throws {
    try shared.report { inspection, style throws(InspectionError) in
      try inspection.digest(of: records.selection, style: style)
    }
  }
}

struct Doctor: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Check the store, and say what to do next.",
    discussion: """
      Looks for damage, expired and replaced records that take room, slow logs and tables, a full \
      disk, a network file system, and what a running program has counted. Each advice has the \
      command to run next. The exit code is 3 if damage was found, and 0 if there is only advice.
      """)

  @OptionGroup var shared: SharedOptions

  @Flag(help: "Verify everything, as verify does: large values and notes of what expires, too.")
  var deep = false

  func run() throws {
    try shared.report { now, progress, style throws(InspectionError) in
      try Inspection.doctor(
        shared.store, now: now, isDeep: deep, progress: progress, style: style)
    }
  }
}
