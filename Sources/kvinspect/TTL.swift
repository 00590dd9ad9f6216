import ArgumentParser
import LarderInspection

struct TTL: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ttl",
    abstract: "Show when records expire, and what a sweep would delete.",
    discussion: """
      BYTES is the size of the records with their keys, before compression. The backlog is the \
      expired records that a sweep would delete now.
      """)

  @OptionGroup var shared: SharedOptions

  @Option(help: "Only records of this cache: its name, or # and its number.")
  var cache: String?

  func run() throws {
    try shared.report { inspection, style throws(InspectionError) in
      try inspection.timeToLive(ofCache: cache, style: style)
    }
  }
}
