/// A place in which several machines have the entries of a cache, such as a Redis server.
///
/// The cache asks the tier before it loads a value, and saves a loaded value in the tier first. The
/// tier notifies the ``SharedPart`` of the cache of changes by other machines.
package protocol RecordTier: Sendable {
  /// The tier's key of an entry.
  ///
  /// - Throws: ``StoreError/invalidArgument(_:)`` if it is too long for the tier.
  func key(for userKey: some Collection<UInt8>) throws(StoreError) -> [UInt8]

  /// Reads what the tier has under a key of its own.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - version: The version of the local copy; nil if there is no copy. If the tier has the same
  ///     version, it does not send the record.
  ///   - arrived: Called when the reply has arrived. The cache was notified of all changes that are
  ///     older than the reply, and of no newer one.
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

  /// Waits until this machine may load a key that the tier does not have.
  ///
  /// - Parameters:
  ///   - key: The tier's key.
  ///   - tombstone: The version of the tombstone that was seen there; nil for nothing.
  ///   - timer: The timer for the longest wait.
  /// - Returns: Whether it may load. If the calling task is cancelled, it need not wait any longer.
  func claimLoad(
    of key: [UInt8], seen tombstone: UInt64?, timer: LoadTimer
  ) async -> TierClaim

  /// Lets other machines load a key, after a load for which the claim was granted.
  func releaseLoad(of key: [UInt8]) async

  /// The clock that leases run by; nil if the stores have the same one anyway.
  var clock: (any WallClock)? { get }

  /// Whether an entry of the machine is used, within its lifetime, while the tier cannot be asked.
  var servesLocal: Bool { get }
}

/// What a tier has under a key.
package enum TierContent: Sendable {
  /// Nothing, or a tombstone of the version.
  case absent(tombstone: UInt64?)
  /// The version of the local copy: the copy is confirmed while the lease runs.
  case same(Lease)
  case value(SharedRecord, Lease)
  /// Something that a load must not replace.
  case unusable
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

/// Whether a machine may load a key.
package enum TierClaim: Sendable, Hashable {
  /// It may, and the others wait until it releases the key.
  case granted
  /// The key was changed, or another machine has ended its load: the tier is to be asked again.
  case changed
  /// It may, because the machines of the tier do not wait for one another, the tier could not be
  /// asked, or the wait was too long.
  case unclaimed
}

/// What became of a record that was to be written.
package enum TierWriting: Sendable {
  /// It was written. With a lease, the tier still had it afterwards: it is confirmed.
  case written(Lease?)
  /// The condition was not met.
  case refused
  /// It was not written, but what the tier had was removed.
  case removed(any Error)
  /// It was not written, or the outcome is unknown.
  case unavailable(any Error)
}
