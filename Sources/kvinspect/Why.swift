import ArgumentParser
import LarderInspection

struct Why: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Say what a read of a key would return, and why.",
    usage: "kvinspect why <store> <key> [<options>]")

  @OptionGroup var shared: SharedOptions
  @OptionGroup var key: KeyArgument

  func run() throws {
    try shared.report { inspection, style throws(InspectionError) in
      try inspection.why(key.text, cache: key.cache, style: style)
    }
  }
}
