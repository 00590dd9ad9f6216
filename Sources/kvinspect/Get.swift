import ArgumentParser
import LarderInspection

struct Get: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show a record: its fields and its payload.",
    usage: "kvinspect get <store> <key> [<options>]",
    discussion: "Expired records are shown, and marked as expired.")

  @OptionGroup var shared: SharedOptions

  // An array, because a single argument does not accept negative numbers.
  @Argument(parsing: .allUnrecognized, help: "The key, in the form that ls writes.")
  var key: [String]

  @Option(
    help: "The cache: its name, or # and its number; required if several caches have the key.")
  var cache: String?

  @Option(help: "How to write the payload: auto, json, hex, size, none.")
  var values: ValueForm = .auto

  @Flag(help: "Write the payload's bytes and nothing else.")
  var raw = false

  func validate() throws {
    // Only numbers are written with a leading dash.
    if let option = key.first(where: { $0.hasPrefix("-") && Int($0) == nil }) {
      throw ValidationError("Unknown option '\(option)'")
    }
    guard key.count == 1 else { throw ValidationError("get takes one key, not \(key.count)") }
    guard !(raw && shared.redact) else {
      throw ValidationError("--raw and --redact exclude each other")
    }
  }

  func run() throws {
    let key = key[0]
    try shared.run { inspection, output throws(InspectionError) in
      guard raw else {
        return try inspection.get(
          key, cache: cache, style: shared.style(values: values), to: &output)
      }
      let payload = try inspection.payload(of: key, cache: cache, keys: shared.keys)
      if payload.isExpired, !shared.quiet { printMessage("\(key) is expired") }
      output.write(payload.bytes)
      return .fine
    }
  }
}
