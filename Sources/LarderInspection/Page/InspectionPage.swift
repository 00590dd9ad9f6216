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

  /// The key that opens its sealed values; nil to leave them sealed.
  let key: UserKey?
  private let now: @Sendable () throws(InspectionError) -> Date
  private let current: Mutex<Snapshot>

  /// What all views show: the store at one moment, or the reason why it cannot be opened.
  struct Snapshot {
    let inspection: Result<Inspection, InspectionError>
    let takenAt: Date
  }

  /// Takes the first snapshot of a store.
  ///
  /// - Parameters:
  ///   - directory: A store's directory, by any path.
  ///   - other: The directory of a store that it is compared with; nil for none.
  ///   - key: The key that opens sealed values; nil to leave them sealed.
  ///   - token: A secret, as ``newToken()`` makes it.
  ///   - style: How keys and values are written.
  ///   - now: Returns the moment at which the entries of a new snapshot are judged.
  /// - Throws: As ``Inspection/init(at:now:linking:key:progress:)``, except that a damaged store
  ///   gets a page.
  package init(
    of directory: String, comparedWith other: String? = nil, openedWith key: UserKey? = nil,
    token: String, style: Style,
    now: @escaping @Sendable () throws(InspectionError) -> Date
  ) throws(InspectionError) {
    self.directory = try FileAccess.directory(directory)
    self.other = try other.map { path throws(InspectionError) in try FileAccess.directory(path) }
    (self.key, self.token, self.now) = (key, token, now)
    var style = style
    style.format = .table
    (style.width, style.isColored, style.numbers) = (nil, false, nil)
    self.style = style
    let takenAt = Moment.now()
    let first = Result { () throws(InspectionError) in
      try Inspection(at: directory, now: try now(), key: key)
    }
    if case .failure(let error) = first, error.status != .damaged { throw error }
    current = Mutex(Snapshot(inspection: first, takenAt: takenAt))
  }

  /// A secret for addresses: 128 random bits in hexadecimal.
  package static func newToken() -> String {
    let bytes = (0..<16).map { _ in UInt8.random(in: .min ... .max) }
    return String(KeyForm.hex(bytes).dropFirst(2))
  }

  private var snapshot: Snapshot { current.withLock { $0 } }

  /// Takes a new snapshot; the one before stays if that fails.
  private func refresh() throws(InspectionError) {
    let takenAt = Moment.now()
    let new = try Inspection(at: directory, now: try now(), key: key)
    current.withLock { $0 = Snapshot(inspection: .success(new), takenAt: takenAt) }
  }

  /// Answers a request.
  ///
  /// The response is sent while it is made. If the client leaves, the scan ends.
  ///
  /// - Complexity: A view takes as long as the commands whose reports it shows.
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
        try PageAnswer(
          page: self, snapshot: snapshot, view: view, query: query, output: output
        ).write()
      }
    } catch {
      if output.hasBegun {
        output.write(Markup(error) + PageFrame.end)
      } else {
        output.replace(by: PageHead(error.httpStatus))
        let frame = PageFrame(self, snapshot, title: "This could not be shown")
        output.write(frame.begin + Markup(error) + PageFrame.end)
      }
    }
    output.end()
  }
}

extension InspectionError {
  /// The error for options that this program, as it was built, cannot follow.
  package init(usage message: String) { self.init(.usage, message) }

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
