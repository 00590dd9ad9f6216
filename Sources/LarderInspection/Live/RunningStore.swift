import Foundation
import Larder

/// Where a change of a store is made.
package enum ChangePlace: Sendable {
  /// Nowhere: the report says what would be changed. The store may be open.
  case dryRun
  /// In the files of a store that is not open.
  case files
  /// In the process that has the store open.
  case process
}

/// The process that has a store open and accepts commands; see `Store.Options.control`.
struct RunningStore {
  let path: String
  /// The seconds after which a step without an answer looks whether the process is there.
  var patience: Int32 = 10

  /// Gives a command, and waits for its answer.
  ///
  /// - Throws: An ``InspectionError`` with the status `unavailable` if nobody accepts commands, all
  ///   that may run at once are under way, or the process ends before it answers: it is unknown
  ///   then whether the command took effect. Otherwise the failure of the command, or
  ///   `unsupported` if the process has another version of this library.
  func ask(_ request: ControlRequest) throws(InspectionError) -> ControlReply {
    var client = try connect()
    let greeting: [UInt8]
    do throws(ControlClient.Failure) {
      greeting = try client.receive()
    } catch {
      throw try refusal(error)
    }
    guard case .ready(ControlReply.version) = try reply(in: greeting) else {
      throw InspectionError(
        .unsupported, "the process that has the store open has another version of this library")
    }
    do throws(ControlClient.Failure) {
      try client.send(request.line)
    } catch {
      throw try refusal(error)
    }
    return try reply(in: answer(of: &client))
  }

  private func connect() throws(InspectionError) -> ControlClient {
    do throws(ControlClient.Failure) {
      return try ControlClient(in: path, waiting: patience)
    } catch {
      throw try refusal(error)
    }
  }

  func answer(of client: inout ControlClient) throws(InspectionError) -> [UInt8] {
    while true {
      do throws(ControlClient.Failure) {
        return try client.receive()
      } catch {
        // A compaction may take minutes.
        if case .silent = error, client.process == 0 || FileAccess.isRunning(client.process) {
          continue
        }
        throw InspectionError(
          .unavailable,
          "the store was closed, or its process ended, before it answered: whether the command "
            + "took effect is unknown")
      }
    }
  }

  private func reply(in line: [UInt8]) throws(InspectionError) -> ControlReply {
    guard let reply = ControlReply(line: line) else {
      throw InspectionError(.unsupported, "\(path)/\(ControlFile.name) gives an unknown answer")
    }
    guard case .failed(let failure) = reply else { return reply }
    throw InspectionError(failure.outcome, failure.message)
  }

  /// The error if nobody takes a command.
  private func refusal(
    _ failure: ControlClient.Failure
  ) throws(InspectionError) -> InspectionError {
    let owner = try StoreOwner(of: path)
    let message =
      switch (failure, owner?.isRunning) {
      case (.system(let text), _): "cannot connect to \(path)/\(ControlFile.name): \(text)"
      case (_, nil), (_, false?): "no process has the store open: use --write instead of --live"
      case (.absent, true?), (.refused, true?):
        "process \(owner?.pid ?? 0) has the store open, and accepts no commands: it must be opened "
          + "with Options.control"
      case (.silent, true?), (.ended, true?):
        "process \(owner?.pid ?? 0) has the store open, and does not answer"
      }
    return InspectionError(.unavailable, message)
  }
}

extension ControlFailure {
  fileprivate var outcome: Outcome {
    switch kind {
    case .busy, .closed: .unavailable
    case .damaged: .damaged
    case .io: .io
    case .unsupported: .unsupported
    case .invalid: .usage
    }
  }
}

extension Inspection {
  /// Releases the decoded values of the process that has a store open, until they take no more than
  /// a number of bytes.
  ///
  /// - Throws: An ``InspectionError`` with the status `unavailable` if no process has the store
  ///   open and accepts commands; `usage` if the number is negative; `unsupported`.
  package static func releaseMemory(
    of directory: String, to bytes: Int, style: Style
  ) throws(InspectionError) -> Report {
    let path = try FileAccess.directory(directory)
    guard bytes >= 0 else { throw InspectionError(.usage, "\(bytes) bytes are too few") }
    try style.expectNoCSV("release-memory does")
    let reply = try RunningStore(path: path).ask(.releaseMemory(bytes: bytes))
    guard case .released(let before, let after) = reply else { throw .strayReply }
    return Report(ofSizesIn: path, before: before, after: after, style: style)
  }
}

extension InspectionError {
  /// The error for the answer to another command.
  static var strayReply: InspectionError {
    InspectionError(.unsupported, "the process that has the store open gives an unknown answer")
  }
}
