import ArgumentParser
import Foundation
import LarderInspection

struct Restore: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Restore a backup to a new store, after checking each of its files.",
    usage: "kvinspect restore <backup> <target> [<options>]")

  @OptionGroup var shared: SharedOptions

  @Argument(help: "A missing or empty directory.", completion: .directory)
  var target: String

  func run() throws {
    try shared.report { (_: Date, style: Style) throws(InspectionError) in
      try Inspection.restore(shared.store, to: target, style: style)
    }
  }
}
