public import Foundation

/// A value as a cache keeps it, with what is known about it.
public struct Entry<Value: Sendable>: Sendable {
  /// The value.
  public let value: Value
  /// When it was saved, as the store's clock told it then, to the last bit.
  public let savedAt: Date
  /// How old it was when it was read, in seconds; negative if it was saved in the future.
  public let age: TimeInterval
  /// Where it was read from.
  public let origin: Origin
}

/// Where an entry was read from.
public enum Origin: Sendable {
  /// From memory: the store is ``Store/inMemory(options:)``.
  case memory
  /// From the store's directory.
  case disk
}

/// What is known about an entry without its value.
public struct EntryMetadata: Sendable, Hashable {
  /// When it was saved, as the store's clock told it then, to the last bit.
  public let savedAt: Date
  /// How old it was when it was read, in seconds; negative if it was saved in the future.
  public let age: TimeInterval
  /// How long its encoded value is, in bytes.
  public let payloadBytes: Int
}

/// What a cache has for a key.
///
/// Four answers, so that none has to be guessed from another.
public enum Lookup<Value: Sendable>: Sendable {
  /// Young enough.
  case fresh(Entry<Value>)
  /// Past its fresh time and still kept: good for when nothing better is to be had.
  case stale(Entry<Value>)
  /// Too old, by the cache's lifetime or by the call's maximum age.
  ///
  /// The value is not shown.
  case expired(EntryMetadata)
  /// There is nothing under the key.
  case missing
}
