import ArgumentParser
import LarderInspection

struct Info: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Tell what the store is made of: its owner, its caches, its files.")

  @OptionGroup var shared: SharedOptions

  func run() throws {
    try shared.run { inspection, output throws(InspectionError) in
      try inspection.info(style: shared.style(), to: &output)
    }
  }
}
