public import Foundation

/// The entry that a cache has before a load.
///
/// An entry that cannot be read, or that was invalidated, is not offered.
public struct Previous<Value: Sendable>: Sendable {
  /// The value; nil if the entry has expired.
  public let value: Value?
  /// The validator that the entry was saved or touched with; nil if it has none.
  public let validator: Validator?
  /// The date the entry was saved.
  public let savedAt: Date
}

extension Previous {
  /// An entry of no cache, for tests.
  package init(_ value: Value?, validator: Validator?, savedAt: Date) {
    self.init(value: value, validator: validator, savedAt: savedAt)
  }
}

/// The result of a load.
public struct LoadReply<Value: Sendable>: Sendable {
  enum Content: Sendable {
    case value(Value, Lifetime?, Validator?, [String])
    case unsaved(Value)
    case notShared(Value)
    case unchanged(Lifetime?, Validator?)
    /// With the time for which the cache remembers it; nil for that of the options.
    case absent(Duration?)
  }

  let content: Content

  /// A value, which is saved and returned.
  ///
  /// - Parameters:
  ///   - value: At most 32 MiB encoded.
  ///   - lifetime: The entry's own lifetime; nil, the default, leaves it to the cache.
  ///   - validator: 1 to 4,096 bytes; nil, the default, for none.
  ///   - tags: Up to 16, of 1 to 64 bytes of UTF-8 each; none by default.
  /// - Returns: The reply.
  public static func value(
    _ value: Value, lifetime: Lifetime? = nil, validator: Validator? = nil, tags: [String] = []
  ) -> LoadReply {
    LoadReply(content: .value(value, lifetime, validator, tags))
  }

  /// A value that is returned and not saved, such as one with `Cache-Control: no-store`.
  ///
  /// ```swift
  /// return reply.isError ? .unsaved(reply.list) : .value(reply.list)
  /// ```
  ///
  /// An entry that is there stays.
  public static func unsaved(_ value: Value) -> LoadReply { LoadReply(content: .unsaved(value)) }

  /// A value for the caller alone whose closure loaded it, such as one with a session's cookie.
  ///
  /// ```swift
  /// return reply.headerFields[.setCookie] == nil ? .value(reply) : .notShared(reply)
  /// ```
  ///
  /// Nothing is saved, and an entry that is there stays. Other callers that wait for the load do
  /// not get the value: each of them calls its own closure, all at the same time. A closure that
  /// throws ``NotShared`` does the same with an error.
  public static func notShared(_ value: Value) -> LoadReply {
    LoadReply(content: .notShared(value))
  }

  /// The previous entry is still right, as after an HTTP status 304: it becomes fresh again.
  ///
  /// ```swift
  /// if response.status == 304 { return .unchanged }
  /// ```
  ///
  /// Its value is returned, also if it had expired. If there is no previous entry, the call throws
  /// ``StoreError/invalidArgument(_:)``.
  public static var unchanged: LoadReply { unchanged(lifetime: nil) }

  /// As ``unchanged``, with another lifetime or validator.
  ///
  /// ```swift
  /// if response.status == 304 { return .unchanged(lifetime: .hours(1)) }
  /// ```
  ///
  /// - Parameters:
  ///   - lifetime: The entry's own lifetime from now on; nil keeps what it has.
  ///   - validator: 1 to 4,096 bytes in place of the entry's; nil, the default, keeps what it has.
  /// - Returns: The reply.
  public static func unchanged(lifetime: Lifetime?, validator: Validator? = nil) -> LoadReply {
    LoadReply(content: .unchanged(lifetime, validator))
  }

  /// There is no value, as after an HTTP status 404: an entry that is there is removed.
  ///
  /// ```swift
  /// if response.status == 404 { return .absent }
  /// ```
  ///
  /// The calls return nil. See ``Loading/absentFor``.
  public static var absent: LoadReply { LoadReply(content: .absent(nil)) }

  /// As ``absent``, remembered for a time of its own.
  ///
  /// ```swift
  /// if response.status == 410 { return .absent(for: .seconds(3600)) }
  /// ```
  ///
  /// - Parameter span: In place of ``Loading/absentFor``; zero or less remembers nothing.
  /// - Returns: The reply.
  public static func absent(for span: Duration) -> LoadReply {
    LoadReply(content: .absent(span))
  }
}

extension LoadReply {
  /// The same reply for the loads of a cache.
  var ofAnyType: LoadReply<any Sendable> {
    switch content {
    case .value(let value, let lifetime, let validator, let tags):
      .value(value, lifetime: lifetime, validator: validator, tags: tags)
    case .unsaved(let value): .unsaved(value)
    case .notShared(let value): .notShared(value)
    case .unchanged(let lifetime, let validator):
      .unchanged(lifetime: lifetime, validator: validator)
    case .absent(let span): LoadReply<any Sendable>(content: .absent(span))
    }
  }
}

/// An error for the caller alone whose closure threw it, such as that its session has ended.
///
/// ```swift
/// if response.status == 401 { throw NotShared(SessionEnded()) }
/// ```
///
/// A load that throws it fails as with `error`, which is what its caller gets; see
/// ``LoadReply/notShared(_:)`` for the others. The failure is not remembered for
/// ``Loading/retryThrottle``, and the load is not repeated.
public struct NotShared: Error {
  /// The error that the caller gets.
  public let error: any Error

  /// Wraps the error that the caller is to get.
  public init(_ error: any Error) { self.error = error }
}

/// An error that may tell when its source wants to be asked again.
///
/// If a load throws one, ``Loading/retries`` waits at least that long, or does not repeat the load
/// if that is longer than its longest time; and ``Loading/retryThrottle`` lasts at least that long,
/// up to a day.
///
/// ```swift
/// struct Busy: RetryTimeError { let retryAfter: Duration? }
/// ```
public protocol RetryTimeError: Error {
  /// The time after which the source may be asked again; nil if it did not say.
  var retryAfter: Duration? { get }
}

/// A value from a cache or from a load, and how it was obtained.
public struct LoadedEntry<Value: Sendable>: Sendable {
  /// The value.
  public let value: Value
  /// Where the value came from.
  public let origin: Origin
  /// The date it was saved; nil if it was loaded or confirmed for this call.
  public let savedAt: Date?
  /// The time since it was saved; zero if it was loaded or confirmed for this call.
  public let age: Duration
  /// Whether it is an entry that is past its fresh time.
  public let isStale: Bool
  /// Whether it is being refreshed in the background.
  public let isRefreshing: Bool
  /// Whether the cache has this value.
  ///
  /// It is false if the load replied ``LoadReply/unsaved(_:)`` or ``LoadReply/notShared(_:)``, if
  /// the key was changed during the load, so that the change won, or because of ``saveFailure``.
  public let isSaved: Bool
  /// Why the loaded value could not be saved; nil if nothing failed.
  public let saveFailure: StoreError?
  /// Why a stale value is returned instead of a loaded one; nil if no load has failed.
  public let loadFailure: (any Error)?
  /// The validator of the entry, or of the reply; nil if it has none.
  public let validator: Validator?
  /// The tags of the entry, or of the reply.
  public let tags: [String]
  /// Whether the tier that several machines share is known to have the value.
  ///
  /// It had it no longer ago than a lease; see the product `LarderShared`. False in a cache that is
  /// not shared.
  public internal(set) var isConfirmed = false
}

extension LoadedEntry {
  /// A value of no cache, for previews and tests.
  package init(
    _ value: Value, origin: Origin, savedAt: Date?, age: Duration, isStale: Bool,
    isRefreshing: Bool, isSaved: Bool, saveFailure: StoreError?, loadFailure: (any Error)?,
    validator: Validator? = nil, tags: [String] = []
  ) {
    self.init(
      value: value, origin: origin, savedAt: savedAt, age: age, isStale: isStale,
      isRefreshing: isRefreshing, isSaved: isSaved, saveFailure: saveFailure,
      loadFailure: loadFailure, validator: validator, tags: tags)
  }

  /// An entry of the cache.
  init(
    _ entry: Entry<Value>, age: Duration, isStale: Bool = false, isRefreshing: Bool = false,
    loadFailure: (any Error)? = nil
  ) {
    self.init(
      value: entry.value, origin: entry.origin, savedAt: entry.savedAt, age: age, isStale: isStale,
      isRefreshing: isRefreshing, isSaved: true, saveFailure: nil, loadFailure: loadFailure,
      validator: entry.validator, tags: entry.tags)
  }

  /// The same entry with its value in another type.
  func with<Other: Sendable>(value: Other) -> LoadedEntry<Other> {
    LoadedEntry<Other>(
      value: value, origin: origin, savedAt: savedAt, age: age, isStale: isStale,
      isRefreshing: isRefreshing, isSaved: isSaved, saveFailure: saveFailure,
      loadFailure: loadFailure, validator: validator, tags: tags, isConfirmed: isConfirmed)
  }

  func with(isRefreshing: Bool? = nil, isStale: Bool? = nil) -> LoadedEntry {
    LoadedEntry(
      value: value, origin: origin, savedAt: savedAt, age: age, isStale: isStale ?? self.isStale,
      isRefreshing: isRefreshing ?? self.isRefreshing, isSaved: isSaved, saveFailure: saveFailure,
      loadFailure: loadFailure, validator: validator, tags: tags, isConfirmed: isConfirmed)
  }

  /// A value that was loaded, or confirmed by a load.
  init(
    _ value: Value, from origin: Origin, _ saving: LoadSaving, validator: Validator? = nil,
    tags: [String] = []
  ) {
    var failure: StoreError?
    if case .failed(let error) = saving { failure = error }
    self.init(
      value: value, origin: origin, savedAt: nil, age: .zero, isStale: false, isRefreshing: false,
      isSaved: saving.isDone, saveFailure: failure, loadFailure: nil, validator: validator,
      tags: tags)
    if case .shared = saving { isConfirmed = true }
  }
}
