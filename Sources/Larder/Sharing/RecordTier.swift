/// A place in which several machines have the entries of a cache, such as a Redis server.
///
/// Reads of the cache ask it before a value is loaded, and saves of loaded values go through it. It
/// tells the ``SharedPart`` of the cache what other machines change.
package protocol RecordTier: Sendable {
  /// The tier's key of an entry.
  ///
  /// - Throws: ``StoreError/invalidArgument(_:)`` if it is too long for the tier.
  func key(for userKey: some Collection<UInt8>) throws(StoreError) -> [UInt8]

  /// Reads what the tier has under a key of its own.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - version: The version of a local copy, which then is not sent again; nil if there is none.
  ///   - arrived: Called when the reply has arrived: after all changes by others that the reply
  ///     knows of were told, and before all others.
  /// - Returns: What it has.
  func read(
    _ key: [UInt8], unless version: UInt64?, arrived: @escaping @Sendable () -> Void
  ) async -> TierContent

  /// Writes a value or a tombstone.
  ///
  /// - Parameters:
  ///   - record: The record.
  ///   - key: The tier's key.
  ///   - condition: When it is written.
  ///   - stay: How long it stays; nil for as long as the tier keeps anything.
  ///   - arrived: As for ``read(_:unless:arrived:)``.
  /// - Returns: What became of it.
  func write(
    _ record: SharedRecord, under key: [UInt8], if condition: TierCondition, for stay: Duration?,
    arrived: @escaping @Sendable () -> Void
  ) async -> TierWriting

  /// Whether an entry of the machine is used, within its lifetime, while the tier cannot be asked.
  var servesLocal: Bool { get }
}

/// What a tier has under a key.
package enum TierContent: Sendable {
  /// Nothing, or a tombstone of the version.
  case absent(tombstone: UInt64?)
  /// The value of which the machine has a copy; it may be believed while the lease runs.
  case same(Lease)
  case value(SharedRecord, Lease)
  /// Something that a load must not replace.
  case unusable(String)
  case unavailable(any Error)
}

/// When a tier writes a record.
package enum TierCondition: Sendable, Hashable {
  case always
  /// If there is nothing under the key.
  case absent
  /// If there is the value, or the tombstone, of this version.
  case version(UInt64)
}

/// What became of a record that was to be written.
package enum TierWriting: Sendable {
  /// It was written; with a lease if the tier still had it afterwards, and it may be believed.
  case written(Lease?)
  /// The condition was not met.
  case refused
  /// It was not written, but what the tier had was removed.
  case removed(any Error)
  /// It was not written, or nobody knows.
  case unavailable(any Error)
}
