import ArgumentParser
import LarderInspection

struct Doctor: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Check the store, and say what to do next.",
    discussion: """
      Looks for damage, expired and replaced records that take room, slow logs and tables, a full \
      disk, a network file system, and what a running program has counted. Each advice has the \
      command to run next. The exit code is 3 if damage was found, and 0 if there is only advice.
      """)

  @OptionGroup var shared: SharedOptions

  @Flag(help: "Verify everything, as verify does: large values and notes of what expires, too.")
  var deep = false

  func run() throws {
    try shared.report { now, style throws(InspectionError) in
      try Inspection.doctor(shared.store, now: now, isDeep: deep, style: style)
    }
  }
}
