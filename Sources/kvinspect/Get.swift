import ArgumentParser
import LarderInspection

struct Get: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show a record: what is known about it, and its payload.",
    usage: "kvinspect get <store> <key> [<options>]",
    discussion: "An expired record is shown, and marked so.")

  @OptionGroup var shared: SharedOptions

  // An array, because only one takes a negative number and not an option of that name.
  @Argument(parsing: .allUnrecognized, help: "The key, as ls writes it.")
  var key: [String]

  @Option(help: "The cache, by its name or as # and its number; needed when several have the key.")
  var cache: String?

  @Option(help: "How to write the payload: auto, json, hex, size, none.")
  var values: ValueForm = .auto

  @Flag(help: "Write the payload's bytes and nothing else.")
  var raw = false

  func validate() throws {
    // No key is written with a dash unless it is a number.
    if let option = key.first(where: { $0.hasPrefix("-") && Int($0) == nil }) {
      throw ValidationError("Unknown option '\(option)'")
    }
    guard key.count == 1 else { throw ValidationError("One key is wanted, not \(key.count)") }
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
      if payload.isExpired, !shared.quiet { say("\(key) is expired") }
      output.write(payload.bytes)
      return .fine
    }
  }
}
