public import Foundation
public import Larder

/// A value that was loaded, with where it comes from and what became of it.
public struct Loaded<Value: Sendable>: Sendable {
  /// The two sources of a load.
  public enum Source: Sendable, Hashable {
    /// The server, just now.
    case remote
    /// The cache.
    case cache
  }

  /// The value.
  public let value: Value

  /// Where the value comes from.
  public let source: Source

  /// When the value was saved, if it comes from the cache.
  public let savedAt: Date?

  /// How old the value is, in seconds, if it comes from the cache.
  ///
  /// Negative if it was saved in the future: the clock was moved back.
  public let age: TimeInterval?

  /// Whether the cache holds the value now.
  ///
  /// False for a value from the server whose save failed, see ``saveFailure``, or that the policy
  /// does not save.
  public let isSaved: Bool

  /// Why a value from the server could not be saved.
  ///
  /// Whether the cache still holds an older value is as
  /// ``/Larder/Cache/save(_:for:durability:)`` says.
  public let saveFailure: StoreError?

  /// How many items of the server's reply are not part of the value.
  ///
  /// Most feeds leave nothing out: one incomplete item fails the load. A search for media leaves
  /// out incomplete items that are not songs. 0 for a value from the cache.
  public let leftOut: Int

  /// Why the server's value is not the one delivered, if it was asked before the cache.
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
