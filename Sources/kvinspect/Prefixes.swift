import ArgumentParser
import LarderInspection

struct Prefixes: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show how many records and bytes have keys that begin alike.")

  @OptionGroup var shared: SharedOptions
  @OptionGroup var records: RecordOptions

  @Option(
    parsing: .unconditionalSingleValue,
    help: "A text after which a part of a key ends; repeatable. Without it, / and :.")
  var delimiter: [String] = []

  @Option(help: "The most parts of a prefix.")
  var depth = 2

  @Option(help: "The most prefixes below another one; the largest are shown.")
  var limit = 20

  func validate() throws {
    try requirePositive(depth, "--depth")
    try requirePositive(limit, "--limit")
    guard !delimiter.contains("") else {
      throw ValidationError("--delimiter must not be empty")
    }
  }

  func run() throws {
    try shared.report { inspection, style throws(InspectionError) in
      try inspection.prefixes(
        of: records.selection, delimiters: delimiter.isEmpty ? ["/", ":"] : delimiter,
        depth: depth, limit: limit, style: style)
    }
  }
}
