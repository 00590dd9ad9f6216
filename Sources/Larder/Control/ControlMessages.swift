package import Foundation

/// A command for the process that has a store open, as a line of JSON.
package enum ControlRequest: Sendable, Equatable, Codable {
  /// Removes an entry of a cache, which need not be open there.
  case remove(cache: String, key: Data)
  case invalidate(tag: String)
  case sweep
  case compact
  /// Releases decoded values, until they take no more than a number of bytes.
  case releaseMemory(bytes: Int)
}

/// A line of that process: a greeting, or the answer to a ``ControlRequest``.
package enum ControlReply: Sendable, Equatable, Codable {
  /// A request may be sent. The version increases when a request or a reply is changed.
  case ready(version: Int)
  /// Whether there was an entry.
  case removed(Bool)
  case invalidated
  /// The number of entries that were deleted.
  case swept(entries: Int)
  case compacted(CompactionReport)
  /// The bytes of the decoded values, before and after.
  case released(from: Int, to: Int)
  case failed(ControlFailure)

  package static let version = 1
}

/// Why a command failed.
package struct ControlFailure: Error, Sendable, Equatable, Codable {
  package enum Kind: String, Sendable, Codable {
    /// Too many commands are under way.
    case busy
    /// The store is closed or suspended.
    case closed
    case damaged
    case io
    case unsupported
    case invalid
  }

  package var kind: Kind
  package var message: String

  package init(_ kind: Kind, _ message: String) {
    (self.kind, self.message) = (kind, message)
  }

  init(_ error: any Error) {
    let kind: Kind =
      switch error {
      case StoreError.closed, StoreError.suspended: .closed
      case StoreError.corrupt: .damaged
      case StoreError.incompatible, StoreError.newerSchema: .unsupported
      case StoreError.invalidArgument: .invalid
      default: .io
      }
    self.init(kind, "\(error)")
  }
}

extension ControlReply {
  /// The line that a client gets.
  var line: [UInt8] { controlLine(self) }

  /// Reads a line; nil if it is not one of this version.
  package init?(line: [UInt8]) {
    guard let reply: Self = readControlLine(line) else { return nil }
    self = reply
  }
}

extension ControlRequest {
  /// The line that the server gets.
  package var line: [UInt8] { controlLine(self) }

  init?(line: [UInt8]) {
    guard let request: Self = readControlLine(line) else { return nil }
    self = request
  }
}

private func controlLine(_ message: some Encodable) -> [UInt8] {
  do {
    return try Array(JSONEncoder().encode(message)) + [UInt8(ascii: "\n")]
  } catch {
    preconditionFailure("the messages have only texts, whole numbers and bytes")
  }
}

private func readControlLine<Message: Decodable>(_ line: [UInt8]) -> Message? {
  do {
    return try JSONDecoder().decode(Message.self, from: Data(line))
  } catch {
    return nil
  }
}
