import ArgumentParser
import LarderInspection

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
      let other = try Inspection(at: other, now: inspection.now)
      return inspection.differences(
        from: other, inCache: cache, style: style)
    }
  }
}
