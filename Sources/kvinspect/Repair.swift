import ArgumentParser
import Foundation
import LarderInspection

struct Repair: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Copy the readable entries of a damaged store to a new one.",
    discussion: """
      The damaged store is only read, with its lock held: it must not be open. An entry whose \
      newest state cannot be read is left out, so that no deleted entry comes back. If the \
      MANIFEST is lost, the newest rows of all tables and logs are used, and those of which a \
      newer state may be lost are doubtful. The exit code is 3 if anything may be lost.
      """)

  @OptionGroup var shared: SharedOptions

  @Option(help: "A missing or empty directory, for the new store.", completion: .directory)
  var output: String

  @Flag(help: "Copy doubtful entries, too. They may have been removed or replaced.")
  var doubtful = false

  func run() throws {
    try shared.report { (_: Date, style: Style) throws(InspectionError) in
      try Inspection.repair(
        shared.store, to: output, keepsDoubtful: doubtful, style: style)
    }
  }
}
