public import Larder

/// A loaded value, and how it was obtained.
///
/// It has the properties of its ``entry``. A value from the server has the origin `.loaded`, and no
/// date.
///
/// ```swift
/// let loaded = try await genres.load()
/// show(loaded.value, isSaved: loaded.isSaved, age: loaded.age)
/// ```
@dynamicMemberLookup public struct Loaded<Value: Sendable>: Sendable {
  /// The value, and how it was obtained.
  ///
  /// Its `loadFailure` is the ``remoteFailure``.
  public let entry: LoadedEntry<Value>

  /// The number of items in the server's reply that the value leaves out.
  ///
  /// Most feeds leave nothing out: one incomplete item fails the load. A media search leaves out
  /// incomplete items that are not songs. 0 for a value from the cache, and for a load that has
  /// shared the request of another one.
  public let leftOut: Int

  /// Makes a loaded value, for previews and tests.
  ///
  /// `LarderTesting` makes entries.
  ///
  /// - Parameters:
  ///   - entry: The value, and how it was obtained.
  ///   - leftOut: The number of items that it leaves out; 0 by default.
  public init(_ entry: LoadedEntry<Value>, leftOut: Int = 0) {
    (self.entry, self.leftOut) = (entry, leftOut)
  }

  /// The value.
  public var value: Value { entry.value }

  /// A property of the entry.
  public subscript<Property>(dynamicMember path: KeyPath<LoadedEntry<Value>, Property>) -> Property
  { entry[keyPath: path] }

  /// Whether the server has confirmed the value in the cache for this load, with status 304.
  public var isRevalidated: Bool { entry.origin != .loaded && entry.savedAt == nil }

  /// Why the server failed before the value was read from the cache; nil if it did not.
  public var remoteFailure: RemoteFailure? { entry.loadFailure as? RemoteFailure }
}
