import Larder

/// The answer to one request.
///
/// It shows one snapshot to its end, even if another request takes a new one.
struct PageAnswer {
  let page: InspectionPage
  let snapshot: InspectionPage.Snapshot
  let view: PageView
  let query: PageQuery
  let output: PageOutput

  var style: Style { page.style }

  /// Writes the view.
  ///
  /// - Throws: What its command throws. A part may have been sent.
  func write() throws(InspectionError) {
    switch view {
    case .style:
      output.replace(by: PageHead(200, type: "text/css; charset=utf-8"))
      output.write(PageStyle.sheet)
    case .icon:
      output.replace(by: PageHead(200, type: "image/svg+xml"))
      output.write(PageStyle.icon)
    case .payload: try writePayload()
    case .overview: try writeOverview()
    case .entries: try writeEntries()
    case .entry: try writeEntry()
    case .expiry: try writeExpiry()
    case .space: try writeSpace()
    case .watch: try writeWatch()
    case .compare: try writeComparison()
    }
  }

  /// Writes what is above the view.
  func begin() { output.write(PageFrame(page, snapshot, view, query).begin) }

  /// Writes what is below the view.
  func end() { output.write(PageFrame.end) }

  /// The snapshot, whose scans show their progress on the page after 0.3 s.
  func inspection() throws(InspectionError) -> Inspection {
    var inspection = try snapshot.inspection.get()
    inspection.progress = ProgressLine(after: 0.3, whileWanted: { output.isWanted }) { line in
      guard let line else { return }
      // Each hides the one before.
      output.write("<p class=progress role=status>\(line)</p>\n" as Markup)
      output.flush()
    }
    return inspection
  }

  /// Writes a report as a part of the view, and says so if it may not be complete.
  @discardableResult
  func write(
    _ report: Report, _ renderer: HTMLRenderer
  ) throws(InspectionError) -> (rows: Int, ending: Report.Ending) {
    var (renderer, stream) = (renderer, output)
    let ending = try report.write(with: &renderer, to: &stream)
    if let note = ending.outcome.note {
      output.write("<p class=error role=note>\(note)</p>\n" as Markup)
    }
    return (renderer.rowCount, ending)
  }
}

extension Outcome {
  /// What a report does not show, where a command has an exit code for it; nil for nothing.
  fileprivate var note: String? {
    switch self {
    case .damaged:
      "Damage was found, so something may be missing here. The command verify names it."
    case .unsupported: "Some entries were written by a later version, and cannot be read."
    default: nil
    }
  }
}
