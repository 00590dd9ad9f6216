public import Foundation
public import Larder

/// Why the server's answer could not be used.
public enum RemoteFailure: Error, Hashable, Sendable {
  /// There was no answer: no connection, a time limit, a refused redirect, a response cut off.
  case connectivity
  /// There was an answer, and it is not what the feed's contract says.
  case invalidData
}

/// Why a load delivered nothing.
///
/// Together with `CancellationError`, when the calling task was cancelled, it is all that a
/// ``Loader`` throws. Whatever the case, the load saved and deleted nothing.
public enum FeedError: Error, Sendable {
  /// The server failed, and the cache, if the order names it, had nothing fresh.
  ///
  /// `cache` is why it could not be read after the server had failed, or nil if it could.
  case remote(RemoteFailure, cache: StoreError?)

  /// The cache could not be read, and the order does not name the server. The entry is kept.
  case cache(StoreError)

  /// The cache has nothing fresh, and the order does not name the server.
  case notFound
}

extension RemoteFailure: LocalizedError, CustomStringConvertible {
  /// The same as ``description``, so that `localizedDescription` is.
  public var errorDescription: String? { description }

  /// The failure as a sentence.
  public var description: String {
    switch self {
    case .connectivity: "The server could not be reached."
    case .invalidData: "The server's answer is not valid."
    }
  }
}

extension FeedError: LocalizedError, CustomStringConvertible {
  /// The same as ``description``, so that `localizedDescription` is.
  public var errorDescription: String? { description }

  /// The error in sentences for people.
  public var description: String {
    switch self {
    case .remote(let failure, nil): "\(failure)"
    case .remote(let failure, let error?): "\(failure) The cache could not be read: \(error)"
    case .cache(let error): "The cache could not be read: \(error)"
    case .notFound: "The cache has nothing that is fresh enough."
    }
  }
}
