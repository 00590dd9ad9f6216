import ArgumentParser
import LarderInspection

struct Info: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show the store's owner, files and caches.")

  @OptionGroup var shared: SharedOptions

  func run() throws {
    try shared.report { inspection, style throws(InspectionError) in
      try inspection.info(style: style)
    }
  }
}
