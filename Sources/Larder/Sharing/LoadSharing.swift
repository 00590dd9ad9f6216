/// What a flight of a shared cache knows of the entry that it has found.
struct LoadSharing: Sendable {
  enum Trust: Sendable {
    /// The tier has it; believed while the lease runs.
    case confirmed(Lease)
    /// The tier could not be asked.
    case unconfirmed
    /// The tier has something else, or nothing.
    case outdated
  }

  /// The version that the machine's copy has in the tier; nil if it was not there.
  var version: UInt64?
  /// As in ``Resident``.
  let validUntil: Double
  let weight: Int
  var trust = Trust.unconfirmed
  /// The condition for writing the loaded value to the tier: it still has what was seen.
  ///
  /// Nil if it could not be asked.
  var seen: TierCondition?
  /// The tier's key, if the tier has nothing there that a load must not replace.
  var absentKey: [UInt8]?
  /// Whether the tier has a value, which may be newer than the entry.
  var tierHasValue = false
  /// Whether unconfirmed entries are used.
  var servesLocal = true

  func isConfirmed(at now: Duration) -> Bool {
    guard case .confirmed(let lease) = trust else { return false }
    return lease.isRunning(at: now)
  }

  /// The state of the entry, whose state by its date is `found`.
  func judge(_ found: LoadMachine.Found, at now: Duration) -> LoadMachine.Found {
    switch (found, trust) {
    case (.failed, _): found
    case (_, .outdated): .unusable
    case (.fresh, _): isConfirmed(at: now) || servesLocal ? found : .unusable
    case (.stale, _), (.unusable, _): found
    }
  }
}
