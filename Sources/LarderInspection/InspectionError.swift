import Foundation
import Larder

/// What a command found, as the exit code of its process.
package enum Outcome: Int32, Sendable {
  /// Everything asked for was found, and nothing damaged.
  case fine = 0
  /// There is no such key or cache.
  case notFound = 2
  /// Something is damaged. What could be read was shown.
  case damaged = 3
  /// There is no store, or it cannot be read now.
  case unavailable = 4
  /// The system refused a read or a write.
  case io = 5
  /// It is not a store, or one of a later version.
  case unsupported = 6
  /// The command itself makes no sense.
  case usage = 64
}

/// Why a command ended without an answer.
package struct InspectionError: LocalizedError, Sendable, CustomStringConvertible {
  /// The exit code that says the same.
  package let status: Outcome
  /// A sentence for people, without a stop; safe on a terminal, whatever it quotes.
  package let description: String
  package var errorDescription: String? { description }

  init(_ status: Outcome, _ description: String) {
    self.status = status
    self.description = description.escapedForTerminal
  }
}
