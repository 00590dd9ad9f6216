import ArgumentParser
import LarderInspection

struct BackUp: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Make a backup of the store, which may be open in another process.",
    usage: "kvinspect backup <store> <target> [<options>]",
    discussion: "restore makes a store of it, and every other command reads it.")

  @OptionGroup var shared: SharedOptions

  @Argument(help: "A missing or empty directory.", completion: .directory)
  var target: String

  func run() throws {
    try shared.report { inspection, style throws(InspectionError) in
      try inspection.backup(to: target, style: style)
    }
  }
}
