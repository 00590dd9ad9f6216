import Larder

extension Inspection {
  /// Checks everything in the store, and writes each problem with its cache and key.
  package func verify(
    style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) -> Outcome {
    let found = try verification()
    switch style.format {
    case .table: write(found, style: style, to: &output)
    case .json:
      let problems = found.problems.map { JSONValue.object(fields(of: $0, style: style)) }
      JSONValue.object(jsonHeading + counts(of: found) + [("faults", .array(problems))])
        .writePretty(to: &output)
      output.write("\n")
    case .jsonl:
      for problem in found.problems {
        JSONValue.object([("schemaVersion", reportVersion)] + fields(of: problem, style: style))
          .write(to: &output)
        output.write("\n")
      }
    case .csv:
      if !style.isQuiet { output.write("cache,key,state,fault\n") }
      for problem in found.problems {
        let cells = cells(of: problem, style: style, absent: "")
        output.write(cells.map(csvCell).joined(separator: ",") + "\n")
      }
    }
    return found.outcome
  }

  private func write(
    _ found: Verification, style: Style, to output: inout some TextOutputStream
  ) {
    output.write(style.isQuiet ? "" : heading + "\n\n")
    output.write("metadata  \(Amount.text(found.metadataRows)) rows\n")
    output.write("records   \(Amount.text(found.records))\n")
    let leftover = Amount.text(found.leftoverRows)
    output.write("index     \(Amount.text(found.indexRows)) rows, \(leftover) of them left over\n")
    if let tornEnd {
      output.write("log       \(tornEnd.escapedForTerminal): a write was in progress\n")
    }
    output.write("problems  \(found.problems.count)\n")
    guard !found.problems.isEmpty else { return }
    output.write("\n")
    var table = Table(["CACHE", "KEY", "STATE", "PROBLEM"], style: style.unlimited)
    for problem in found.problems {
      table.add(cells(of: problem, style: style, absent: "-"), to: &output)
    }
    table.flush(to: &output)
    guard found.outcome == .damaged, !style.isQuiet else { return }
    output.write(
      backup == nil
        ? "\n`kvinspect repair` copies what can be read to a new store.\n"
        : "\nThe backup does not restore; make another one of the store.\n")
  }

  private func cells(of problem: Problem, style: Style, absent: String) -> [String] {
    [
      problem.cache?.label ?? absent, key(of: problem, style: style) ?? absent, problem.state,
      problem.message,
    ]
  }

  private func fields(of problem: Problem, style: Style) -> [(name: String, value: JSONValue)] {
    [
      ("cache", .optional(problem.cache?.label)),
      ("key", .optional(key(of: problem, style: style))),
      ("state", .string(problem.state)), ("fault", .string(problem.message)),
    ]
  }

  private func key(of problem: Problem, style: Style) -> String? {
    guard let cache = problem.cache else { return nil }
    return problem.key.map { style.text(of: $0, in: cache) }
  }

  private func counts(of found: Verification) -> [(name: String, value: JSONValue)] {
    [
      ("metadataRows", .integer(found.metadataRows)), ("records", .integer(found.records)),
      ("indexRows", .integer(found.indexRows)), ("leftoverIndexRows", .integer(found.leftoverRows)),
      ("tornLog", .optional(tornEnd)),
    ]
  }
}

extension Problem {
  fileprivate var state: String { (isUnsupported ? RecordState.unsupported : .damaged).rawValue }
}
