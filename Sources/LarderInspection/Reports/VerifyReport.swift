import Larder

extension Inspection {
  /// Checks everything in the store, and writes what is damaged: of which cache, under which key.
  package func verify(
    style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) -> Outcome {
    let found = try verification()
    switch style.format {
    case .table: write(found, style: style, to: &output)
    case .json:
      let faults = found.faults.map { JSONValue.object(fields(of: $0, style: style)) }
      JSONValue.object(jsonHeading + counts(of: found) + [("faults", .array(faults))])
        .writePretty(to: &output)
      output.write("\n")
    case .jsonl:
      for fault in found.faults {
        JSONValue.object([("schemaVersion", reportVersion)] + fields(of: fault, style: style))
          .write(to: &output)
        output.write("\n")
      }
    case .csv:
      if !style.isQuiet { output.write("cache,key,state,fault\n") }
      for fault in found.faults {
        let cells = cells(of: fault, style: style, absent: "")
        output.write(cells.map(csvCell).joined(separator: ",") + "\n")
      }
    }
    return found.outcome
  }

  private func write(
    _ found: Verification, style: Style, to output: inout some TextOutputStream
  ) {
    output.write(style.isQuiet ? "" : heading + "\n\n")
    output.write("metadata  \(found.metadataRows) rows\n")
    output.write("records   \(found.records)\n")
    output.write("index     \(found.indexRows) rows, \(found.leftoverRows) of them left over\n")
    if let tornEnd {
      output.write("log       \(tornEnd.escapedForTerminal): a write was under way\n")
    }
    output.write("faults    \(found.faults.count)\n")
    guard !found.faults.isEmpty else { return }
    output.write("\n")
    var table = Table(["CACHE", "KEY", "STATE", "FAULT"])
    for fault in found.faults {
      table.add(cells(of: fault, style: style, absent: "-"), to: &output)
    }
    table.flush(to: &output)
  }

  private func cells(of fault: Fault, style: Style, absent: String) -> [String] {
    [
      fault.cache?.label ?? absent, key(of: fault, style: style) ?? absent, fault.state,
      fault.message,
    ]
  }

  private func fields(of fault: Fault, style: Style) -> [(name: String, value: JSONValue)] {
    [
      ("cache", .optional(fault.cache?.label)), ("key", .optional(key(of: fault, style: style))),
      ("state", .string(fault.state)), ("fault", .string(fault.message)),
    ]
  }

  private func key(of fault: Fault, style: Style) -> String? {
    guard let cache = fault.cache else { return nil }
    return fault.key.map { style.text(of: $0, in: cache) }
  }

  private func counts(of found: Verification) -> [(name: String, value: JSONValue)] {
    [
      ("metadataRows", .integer(found.metadataRows)), ("records", .integer(found.records)),
      ("indexRows", .integer(found.indexRows)), ("leftoverIndexRows", .integer(found.leftoverRows)),
      ("tornLog", .optional(tornEnd)),
    ]
  }
}

extension Fault {
  fileprivate var state: String { (isUnsupported ? RecordState.unsupported : .damaged).rawValue }
}
