import ArgumentParser
import LarderInspection

struct Info: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show the store's owner, files and caches.")

  @OptionGroup var shared: SharedOptions

  func run() throws {
    try shared.run { inspection, output throws(InspectionError) in
      try inspection.info(style: shared.form.style(), to: &output)
    }
  }
}
