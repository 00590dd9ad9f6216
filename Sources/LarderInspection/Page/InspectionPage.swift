package import Foundation
import Larder
import Synchronization

/// A page that shows what is in a store: what `kvinspect serve` answers, without the network.
///
/// All views show one snapshot, until a new one is asked for. Several threads may answer requests.
package final class InspectionPage: Sendable {
  /// The store's directory, with links resolved.
  package let directory: String
  let style: Style
  /// The directory of the store that this one is compared with; nil for none.
  let other: String?
  /// The token that the path of every address begins with.
  package let token: String

  private let now: @Sendable () throws(InspectionError) -> Date
  private let current: Mutex<Snapshot>

  /// The snapshot that all views show, or why there is none.
  struct Snapshot {
    let inspection: Result<Inspection, InspectionError>
    let takenAt: Date
  }

  /// Takes the first snapshot of a store.
  ///
  /// - Parameters:
  ///   - directory: A store's directory, by any path.
  ///   - other: The directory of a store that it is compared with; nil for none.
  ///   - token: A secret that nobody can guess, of letters and digits.
  ///   - style: How keys and values are written.
  ///   - now: Returns the moment at which the entries of a new snapshot are judged.
  /// - Throws: As ``Inspection/init(at:now:linking:)``, except that a damaged store gets a page.
  package init(
    of directory: String, comparedWith other: String? = nil, token: String, style: Style,
    now: @escaping @Sendable () throws(InspectionError) -> Date
  ) throws(InspectionError) {
    self.directory = try FileAccess.directory(directory)
    self.other = try other.map { path throws(InspectionError) in try FileAccess.directory(path) }
    (self.token, self.now) = (token, now)
    var style = style
    style.format = .table
    (style.width, style.isColored, style.numbers) = (nil, false, nil)
    self.style = style
    let takenAt = Moment.now()
    let first = Result { () throws(InspectionError) in
      try Inspection(at: directory, now: try now())
    }
    if case .failure(let error) = first, error.status != .damaged { throw error }
    current = Mutex(Snapshot(inspection: first, takenAt: takenAt))
  }

  var snapshot: Snapshot { current.withLock { $0 } }

  /// Takes a new snapshot; the one before stays if that fails.
  private func refresh() throws(InspectionError) {
    let takenAt = Moment.now()
    let new = try Inspection(at: directory, now: try now())
    current.withLock { $0 = Snapshot(inspection: .success(new), takenAt: takenAt) }
  }

  /// Answers a request.
  ///
  /// - Complexity: That of the command whose report the view shows. The response is sent while it
  ///   is made. If the client leaves, the scan ends.
  package func answer(_ request: PageRequest, to client: any PageClient) {
    let output = PageOutput(to: client)
    do throws(InspectionError) {
      guard let view = PageView(rawValue: request.path) else {
        throw InspectionError(.notFound, "there is no view \(request.path.shortened)")
      }
      guard let query = PageQuery(request.query) else {
        throw InspectionError(.usage, "the address is not encoded as addresses are")
      }
      if query["refresh"] != nil {
        try refresh()
        let address = view.address(query.with("refresh", nil))
        output.replace(by: PageHead(303, more: [("Location", address)]))
      } else {
        try write(view, query, to: output)
      }
    } catch {
      if output.hasBegun {
        output.write(Markup(error) + PageFrame.end)
      } else {
        output.replace(by: PageHead(error.httpStatus))
        let frame = PageFrame(self, .overview, PageQuery(), title: "This could not be shown")
        output.write(frame.begin + Markup(error) + PageFrame.end)
      }
    }
    output.end()
  }

  private func write(
    _ view: PageView, _ query: PageQuery, to output: PageOutput
  ) throws(InspectionError) {
    switch view {
    case .style:
      output.replace(by: PageHead(200, type: "text/css; charset=utf-8"))
      output.write(PageStyle.sheet)
    case .icon:
      output.replace(by: PageHead(200, type: "image/svg+xml"))
      output.write(PageStyle.icon)
    case .payload: try writePayload(query, to: output)
    case .overview: try writeOverview(to: output)
    case .entries: try writeEntries(query, to: output)
    case .entry: try writeEntry(query, to: output)
    case .expiry: try writeExpiry(query, to: output)
    case .space: try writeSpace(query, to: output)
    case .watch: try writeWatch(query, to: output)
    case .compare: try writeComparison(to: output)
    }
  }

  /// The snapshot for a response that is written meanwhile: it shows how far a scan is once that
  /// takes a third of a second.
  func inspection(for output: PageOutput) throws(InspectionError) -> Inspection {
    var inspection = try snapshot.inspection.get()
    inspection.progress = ProgressLine(after: 0.3, whileWanted: { output.isWanted }) { line in
      guard let line else { return }
      // Each hides the one before.
      output.write("<p class=progress role=status>\(line)</p>\n" as Markup)
      output.flush()
    }
    return inspection
  }
}

extension InspectionError {
  /// The error of a program that was built without a server.
  package init(withoutPage message: String) { self.init(.usage, message) }

  /// The error for a port that cannot be listened on.
  package init(cannotServeOn port: Int, because reason: String) {
    self.init(.unavailable, "cannot serve on port \(port) of 127.0.0.1: \(reason)")
  }

  /// The status code of HTTP for an error.
  fileprivate var httpStatus: Int {
    switch status {
    case .notFound: 404
    case .usage: 400
    case .unavailable: 503
    case .fine, .different, .damaged, .io, .unsupported: 500
    }
  }
}

extension Markup {
  /// An error, in place of what could not be shown.
  init(_ error: InspectionError) {
    self = "<p class=error role=alert>\(error.description.sentence)</p>\n"
  }
}

extension String {
  /// The text with an upper-case letter at its start and a period at its end.
  fileprivate var sentence: String {
    prefix(1).uppercased() + dropFirst() + (hasSuffix(".") ? "" : ".")
  }
}
