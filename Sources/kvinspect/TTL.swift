import ArgumentParser
import LarderInspection

struct TTL: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ttl",
    abstract: "Tell when records expire, and what a sweep would delete.",
    discussion: """
      BYTES is what their going frees, before compression. The backlog is what has expired and a \
      sweep would delete now.
      """)

  @OptionGroup var shared: SharedOptions

  @Option(help: "Only records of this cache, by its name or as # and its number.")
  var cache: String?

  func run() throws {
    try shared.run { inspection, output throws(InspectionError) in
      try inspection.timeToLive(ofCache: cache, style: shared.style(), to: &output)
    }
  }
}
