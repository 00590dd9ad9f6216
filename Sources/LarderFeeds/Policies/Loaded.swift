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

  /// The date when the value was saved; nil for a value from the server.
  public let savedAt: Date?

  /// The age of the value; nil for a value from the server.
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
  /// incomplete items that are not songs. 0 for a value from the cache.
  public let leftOut: Int

  /// Why the server failed before the value was read from the cache; nil if it did not.
  public let remoteFailure: RemoteFailure?

  init(remote value: Value, leftOut: Int, isSaved: Bool, saveFailure: StoreError? = nil) {
    self.value = value
    self.leftOut = leftOut
    self.source = .remote
    self.savedAt = nil
    self.age = nil
    self.isSaved = isSaved
    self.saveFailure = saveFailure
    self.remoteFailure = nil
  }

  init(cached entry: Entry<Value>, after remoteFailure: RemoteFailure? = nil) {
    self.value = entry.value
    self.leftOut = 0
    self.source = .cache
    self.savedAt = entry.savedAt
    self.age = entry.age
    self.isSaved = true
    self.saveFailure = nil
    self.remoteFailure = remoteFailure
  }
}
