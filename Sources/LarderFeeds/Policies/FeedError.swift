public import Foundation
public import Larder

/// Why a server delivered no value.
public enum RemoteFailure: Error, Hashable, Sendable {
  /// There was no reply: no connection, a time limit, a refused redirect or an incomplete response.
  case connectivity
  /// The reply does not follow the feed's contract.
  case invalidData
}

/// Why a load delivered nothing.
///
/// A ``Loader`` throws only this error, and `CancellationError` if the calling task was cancelled.
/// In each case the load saved and deleted nothing.
public enum FeedError: Error, Sendable {
  /// The server failed, and the cache, if the order includes it, had no fresh value.
  ///
  /// `cache` is the error of reading the cache after the server had failed; nil if there was no
  /// such error.
  case remote(RemoteFailure, cache: StoreError?)

  /// The cache could not be read, and the order does not include the server. The entry is kept.
  ///
  /// Or an option of ``LoadPolicy/loading`` is outside its limits, whatever the order; the error is
  /// then ``/Larder/StoreError/invalidArgument(_:)``.
  case cache(StoreError)

  /// The cache has no fresh value, and the order does not include the server.
  case notFound
}

extension RemoteFailure: LocalizedError, CustomStringConvertible {
  /// Returns ``description``, so that `localizedDescription` does too.
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
  /// Returns ``description``, so that `localizedDescription` does too.
  public var errorDescription: String? { description }

  /// The error in sentences.
  public var description: String {
    switch self {
    case .remote(let failure, nil): "\(failure)"
    case .remote(let failure, let error?): "\(failure) The cache could not be read: \(error)"
    case .cache(.invalidArgument(let message)): "\(StoreError.invalidArgument(message))"
    case .cache(let error): "The cache could not be read: \(error)"
    case .notFound: "The cache has no value that is fresh enough."
    }
  }
}
