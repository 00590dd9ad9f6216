import ArgumentParser
import Foundation
import LarderInspection

/// The key of a sealed store.
struct KeyOption: ParsableArguments {
  #if Encryption
    @Option(
      help: """
        A file with the key that opens sealed values and validators: 32 bytes, or 64 hexadecimal \
        digits.
        """,
      completion: .file())
    var keyFile: String?

    @Option(help: "The name under which a cache was sealed that has lost it, with --key-file.")
    var sealedAs: String?
  #endif

  /// The key in the file; nil without the option.
  var key: UserKey? {
    get throws(InspectionError) {
      #if Encryption
        guard let keyFile else {
          guard sealedAs == nil else {
            throw InspectionError(usage: "--sealed-as needs --key-file")
          }
          return nil
        }
        return try UserKey(inFile: keyFile, lostName: sealedAs)
      #else
        return nil
      #endif
    }
  }
}

/// The options of every command that reads a store.
struct SharedOptions: ParsableArguments {
  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @OptionGroup var form: StyleOptions

  @Option(
    parsing: .unconditional,
    help: "Evaluate lifetimes at this time: 2026-01-31T12:00:00Z, 2026-01-31, +8d, -90s.")
  var now: String?

  @OptionGroup var sealed: KeyOption

  /// The key of `--key-file`; nil without it.
  var key: UserKey? {
    get throws(InspectionError) { try sealed.key }
  }

  /// Runs a command on a snapshot of the store, and throws the exit code unless it is 0.
  func run(
    _ command: (Inspection, inout StandardOutput) throws(InspectionError) -> Outcome
  ) throws {
    try runCommand(quiet: form.quiet) { output throws(InspectionError) in
      try command(
        try Inspection(at: store, now: try moment, key: try key, progress: output.progress),
        &output)
    }
  }

  /// Writes the report of a snapshot of the store, and throws the exit code unless it is 0.
  func report(
    values: ValueForm = .auto, _ command: (Inspection, Style) throws(InspectionError) -> Report
  ) throws {
    try run { inspection, output throws(InspectionError) in
      try command(inspection, form.style(values: values)).write(to: &output)
    }
  }

  /// Lists records, and keeps the numbers of the rows if they are shown on a terminal.
  func list(_ selection: Selection) throws {
    let numbers = LastList.numbers(for: form)
    defer { if let shown = numbers?.shown { LastList.keep(shown) } }
    try report { inspection, style in
      var style = style
      style.numbers = numbers
      return inspection.list(selection, style: style)
    }
  }

  /// Writes the report of a command at the moment of `--now`, and throws the exit code unless it is
  /// 0.
  func report(_ command: (Date, Style) throws(InspectionError) -> Report) throws {
    try form.report { style throws(InspectionError) in try command(try moment, style) }
  }

  /// The same, for a command that shows how far it is.
  func report(
    _ command: (Date, ProgressLine?, Style) throws(InspectionError) -> Report
  ) throws {
    try runCommand(quiet: form.quiet) { output throws(InspectionError) in
      try command(try moment, output.progress, form.style()).write(to: &output)
    }
  }

  /// The moment of `--now`, by default the current time.
  private var moment: Date {
    get throws(InspectionError) { try Moment.parse(now) }
  }
}

/// The options of every command that writes a report with keys.
struct StyleOptions: ParsableArguments {
  @Option(help: "The format of the report: table, json, jsonl; csv for lists of rows.")
  var format: ReportFormat = .table

  @Option(
    help: """
      How keys are written and read: auto (by the kind of the cache's keys), utf8, hex or base64. \
      Keys of bytes, and texts that cannot be shown unchanged, are written as 0x and hex.
      """)
  var keys: KeyForm = .auto

  @Flag(help: "Write no values, and only lengths and checksums of keys.")
  var redact = false

  @Flag(help: "Write data only: no headings, no messages.")
  var quiet = false

  @Flag(help: "Write whole keys, however wide the terminal is.")
  var wide = false

  @Flag(
    name: .customLong("no-color"),
    help: "Write no colours, as with NO_COLOR in the environment.")
  var isPlain = false

  func style(values: ValueForm = .auto) -> Style {
    var style = Style()
    style.format = format
    style.keys = keys
    style.values = values
    style.isRedacted = redact
    style.isQuiet = quiet
    let terminal = Terminal.ofOutput
    style.width = wide ? nil : terminal?.width
    style.isColored = !isPlain && terminal?.showsColors == true
    return style
  }

  /// Writes the report of a command, and throws the exit code unless it is 0.
  func report(_ command: (Style) throws(InspectionError) -> Report) throws {
    try runCommand(quiet: quiet) { output throws(InspectionError) in
      try command(style()).write(to: &output)
    }
  }
}

/// Runs a command, and throws the exit code of its outcome or error unless it is 0.
func runCommand(
  quiet: Bool, _ command: (inout StandardOutput) throws(InspectionError) -> Outcome
) throws {
  var output = StandardOutput(showsProgress: !quiet)
  let status: Outcome
  do throws(InspectionError) {
    status = try command(&output)
  } catch {
    output.progress?.end()
    output.flush()
    if !quiet { printMessage(error.description) }
    throw ExitCode(error.status.rawValue)
  }
  output.progress?.end()
  output.flush()
  if status != .fine { throw ExitCode(status.rawValue) }
}

extension ReportFormat: ExpressibleByArgument {}
extension KeyForm: ExpressibleByArgument {}
extension ValueForm: ExpressibleByArgument {}
