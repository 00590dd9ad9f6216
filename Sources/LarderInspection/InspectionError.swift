import Foundation
import Larder

/// The result of a command, as the exit code of its process.
package enum Outcome: Int32, Sendable {
  /// Everything requested was found, and nothing is damaged.
  case fine = 0
  /// Two stores that were compared have different entries.
  case different = 1
  /// The key or the cache does not exist.
  case notFound = 2
  /// Something is damaged. The readable rest was shown.
  case damaged = 3
  /// There is no store, or it cannot be read now.
  case unavailable = 4
  /// A read or a write failed.
  case io = 5
  /// It is not a store, or a later version wrote it.
  case unsupported = 6
  /// The command line is invalid.
  case usage = 64
}

extension Outcome {
  /// Notes the state of a record: damage outweighs records of later versions.
  mutating func add(_ state: RecordState) {
    switch state.outcome {
    case .damaged: self = .damaged
    case .unsupported where self == .fine: self = .unsupported
    default: break
    }
  }
}

extension RecordState {
  var outcome: Outcome {
    switch self {
    case .fresh, .stale, .expired: .fine
    case .damaged: .damaged
    case .unsupported: .unsupported
    }
  }
}

/// The reason why a command failed.
package struct InspectionError: LocalizedError, Sendable, CustomStringConvertible {
  /// The exit code for this error.
  package let status: Outcome
  /// A message without a final period, escaped for terminals.
  ///
  /// The middle of a long one is cut out: its texts may come from damaged files.
  package let description: String
  package var errorDescription: String? { description }

  private static let mostCharacters = 1500

  init(_ status: Outcome, _ description: String) {
    self.status = status
    let text = description.escapedForTerminal
    let isLong = text.count > Self.mostCharacters
    self.description = isLong ? text.shortened(to: Self.mostCharacters) : text
  }
}

extension String {
  /// The text of a key or a value as a part of a message: without its middle if it is long.
  var shortened: String {
    count > 80 ? "\(shortened(to: 80)) (\(Amount.text(count)) characters)" : self
  }
}

extension InspectionError {
  /// The error for a text that is no key of a cache.
  init(notKey text: String, of cache: KnownCache) {
    self.init(
      .usage,
      "\(text.shortened) is not a key of cache \(cache.label), whose keys are of kind "
        + "\(cache.keyKind)"
    )
  }

  /// The error of a command for any error.
  init(_ error: any Error) {
    switch error {
    case let error as InspectionError: self = error
    case let error as StoreError: self.init(error, of: "store")
    default: self.init(.io, "\(error)")
    }
  }
}
