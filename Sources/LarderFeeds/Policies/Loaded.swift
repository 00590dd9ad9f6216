public import Foundation
public import Larder

/// A loaded value, with its source and whether it was saved.
public struct Loaded<Value: Sendable>: Sendable {
  /// The two sources of a load.
  public enum Source: Sendable, Hashable {
    /// The server.
    case remote
    /// The cache.
    case cache
  }

  /// The value.
  public let value: Value

  /// The source of the value.
  public let source: Source

  /// Whether the server has confirmed the value in the cache for this load, with status 304.
  public let isRevalidated: Bool

  /// Whether the value is past its fresh time, or at its maximum age.
  ///
  /// See ``LoadPolicy/servesStale``.
  public let isStale: Bool

  /// Whether the value is being refreshed in the background.
  public let isRefreshing: Bool

  /// The date when the value was saved; nil for one that the server has delivered or confirmed.
  public let savedAt: Date?

  /// The age of the value; nil for a value from the server, zero for one that it has confirmed.
  ///
  /// Negative if the value was saved in the future, because the clock was set back.
  public let age: Duration?

  /// Whether the cache holds the value.
  ///
  /// False for a value from the server that the policy does not save, or whose save failed, see
  /// ``saveFailure``.
  public let isSaved: Bool

  /// Why a value from the server could not be saved.
  ///
  /// ``/Larder/Cache/save(_:for:lifetime:validator:tags:durability:)`` says whether the cache still
  /// holds the older value.
  public let saveFailure: StoreError?

  /// The number of items in the server's reply that the value leaves out.
  ///
  /// Most feeds leave nothing out: one incomplete item fails the load. A media search leaves out
  /// incomplete items that are not songs. 0 for a value from the cache, and for a load that has
  /// shared the request of another one.
  public let leftOut: Int

  /// Why the server failed before the value was read from the cache; nil if it did not.
  public let remoteFailure: RemoteFailure?

  package init(
    value: Value, source: Source, isRevalidated: Bool = false, isStale: Bool = false,
    isRefreshing: Bool = false, savedAt: Date? = nil, age: Duration? = nil, isSaved: Bool,
    saveFailure: StoreError? = nil, leftOut: Int = 0, remoteFailure: RemoteFailure? = nil
  ) {
    self.value = value
    self.source = source
    self.isRevalidated = isRevalidated
    self.isStale = isStale
    self.isRefreshing = isRefreshing
    self.savedAt = savedAt
    self.age = age
    self.isSaved = isSaved
    self.saveFailure = saveFailure
    self.leftOut = leftOut
    self.remoteFailure = remoteFailure
  }

  init(cached entry: Entry<Value>, isStale: Bool = false, after remoteFailure: RemoteFailure? = nil)
  {
    self.init(
      value: entry.value, source: .cache, isStale: isStale, savedAt: entry.savedAt, age: entry.age,
      isSaved: true, remoteFailure: remoteFailure)
  }
}
