import ArgumentParser
import LarderInspection

struct Get: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show a record: its fields and its payload.",
    usage: "kvinspect get <store> <key> [<options>]",
    discussion: "Expired records are shown, and marked as expired.")

  @OptionGroup var shared: SharedOptions

  @OptionGroup var key: KeyArgument

  @Option(help: "How to write the payload: auto, json, hex, size, none.")
  var values: ValueForm = .auto

  @Flag(help: "Write the payload's bytes and nothing else.")
  var raw = false

  func validate() throws {
    guard !(raw && shared.form.redact) else {
      throw ValidationError("--raw and --redact exclude each other")
    }
  }

  func run() throws {
    let (key, cache) = (key.text, key.cache)
    guard raw else {
      return try shared.report(values: values) { inspection, style throws(InspectionError) in
        try inspection.get(key, cache: cache, style: style)
      }
    }
    try shared.run { inspection, output throws(InspectionError) in
      let payload = try inspection.payload(of: key, cache: cache, keys: shared.form.keys)
      if payload.isExpired, !shared.form.quiet { printMessage("\(key) is expired") }
      output.write(payload.bytes)
      return .fine
    }
  }
}
