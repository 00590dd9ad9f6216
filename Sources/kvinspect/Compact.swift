import ArgumentParser
import Foundation
import LarderInspection

struct Compact: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Compact the files of the store, which must not be open.",
    discussion: """
      Removes what was overwritten or deleted from all files. It writes the whole store once, \
      except for values in segments that are mostly in use.
      """)

  @OptionGroup var shared: SharedOptions

  @Flag(help: "Compact. Required, because the files of the store are replaced.")
  var write = false

  func validate() throws {
    guard write else {
      throw ValidationError("compact replaces files of the store: use --write to confirm")
    }
  }

  func run() throws {
    try shared.report { (_: Date, style: Style) throws(InspectionError) in
      try Inspection.compact(shared.store, style: style)
    }
  }
}
