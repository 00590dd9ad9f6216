public import Foundation
public import Larder

// MARK: - Results of reads

extension Entry {
  /// Makes an entry for a preview or a test, without a store.
  ///
  /// ```swift
  /// let entry = Entry(value: genres, age: .seconds(3600), origin: .disk)
  /// ```
  ///
  /// A ``/Larder/Condition`` with the version of this entry never holds in a store.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - savedAt: The date it was saved; ``ManualClock/start`` by default.
  ///   - age: Its age; zero by default. Fractions of a second are rounded as in a date.
  ///   - origin: Where it was read from; memory by default.
  ///   - lifetime: Its own lifetime; nil, the default, uses its cache's.
  ///   - validator: Its validator; none by default.
  ///   - tags: Its tags, which are not checked; none by default.
  public init(
    value: Value, savedAt: Date = ManualClock.start, age: Duration = .zero,
    origin: Origin = .memory, lifetime: Lifetime? = nil, validator: Validator? = nil,
    tags: [String] = []
  ) {
    self.init(
      value: value, savedAt: savedAt, readAt: savedAt + age.inSeconds, origin: origin,
      lifetime: lifetime, validator: validator, tags: tags)
  }
}

extension EntryMetadata {
  /// Makes the metadata of an expired entry for a preview or a test, without a store.
  ///
  /// - Parameters:
  ///   - savedAt: The date it was saved; ``ManualClock/start`` by default.
  ///   - age: Its age. Fractions of a second are rounded as in a date.
  ///   - payloadBytes: The size of its encoded value; 0 by default.
  ///   - validator: Its validator; none by default, and always none if it was invalidated.
  ///   - isInvalidated: Whether one of its tags was invalidated; false by default.
  public init(
    savedAt: Date = ManualClock.start, age: Duration, payloadBytes: Int = 0,
    validator: Validator? = nil, isInvalidated: Bool = false
  ) {
    self.init(
      savedAt: savedAt, readAt: savedAt + age.inSeconds, payloadBytes: payloadBytes,
      validator: validator, isInvalidated: isInvalidated)
  }
}

// MARK: - Loads

extension Previous {
  /// Makes the previous entry for a test that calls a load by itself.
  ///
  /// - Parameters:
  ///   - value: The value; nil for an entry that has expired.
  ///   - savedAt: The date it was saved; ``ManualClock/start`` by default.
  ///   - validator: The validator of the entry; none by default.
  public init(
    value: Value?, savedAt: Date = ManualClock.start, validator: Validator? = nil
  ) {
    self.init(value, validator: validator, savedAt: savedAt)
  }
}

extension LoadedEntry {
  /// Makes a value with the circumstances of its load for a preview or a test, without a store.
  ///
  /// By default it was loaded and saved for this call.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - savedAt: The date it was saved; nil, the default, if it was loaded for this call.
  ///   - age: The time since it was saved; zero by default.
  ///   - origin: Where it came from; a load by default.
  ///   - isStale: Whether it is past its fresh time; false by default.
  ///   - isRefreshing: Whether it is being refreshed in the background; false by default.
  ///   - isSaved: Whether the cache has it; true by default, and always false with a `saveFailure`.
  ///   - saveFailure: Why it could not be saved; nil by default.
  ///   - loadFailure: Why it is returned instead of a loaded value; nil by default.
  public init(
    value: Value, savedAt: Date? = nil, age: Duration = .zero, origin: Origin = .loaded,
    isStale: Bool = false, isRefreshing: Bool = false, isSaved: Bool = true,
    saveFailure: StoreError? = nil, loadFailure: (any Error)? = nil
  ) {
    self.init(
      value, origin: origin, savedAt: savedAt, age: age, isStale: isStale,
      isRefreshing: isRefreshing, isSaved: isSaved && saveFailure == nil,
      saveFailure: saveFailure, loadFailure: loadFailure)
  }
}
