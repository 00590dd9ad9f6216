/// The version of an entry: which save its value comes from.
///
/// Each save gives an entry a new version. ``Cache/touch(_:lifetime:validator:)`` and migration
/// keep it, because they keep the value. Versions of different stores cannot be compared.
public struct Version: Sendable, Hashable {
  let sequence: UInt64

  init(_ record: Record) { sequence = record.originalSequence }

  init(sequence: UInt64) { self.sequence = sequence }

  /// The version of an entry that no store has: commit sequences begin at 1.
  static var unsaved: Version { Version(sequence: 0) }
}

/// What must hold for an entry so that a change is made.
///
/// ```swift
/// let isNew = try sessions.save(session, for: id, if: .absent)
/// if let entry = try notes.entry(for: id) {
///   let isSaved = try notes.save(edited, for: id, if: .unchanged(since: entry))
/// }
/// ```
///
/// A change and the check of its condition are one step: no other change of the key comes between
/// them.
public struct Condition: Sendable, Hashable {
  enum Rule: Sendable, Hashable {
    case absent
    case present
    case unchanged(Version)
  }

  let rule: Rule

  /// There is no entry, or it has expired or was invalidated.
  ///
  /// ```swift
  /// let isFirst = try genres.save(list, for: "all", if: .absent)
  /// ```
  public static var absent: Condition { Condition(rule: .absent) }

  /// There is an entry that is fresh or stale.
  ///
  /// ```swift
  /// let isReplaced = try genres.save(list, for: "all", if: .present)
  /// ```
  public static var present: Condition { Condition(rule: .present) }

  /// There is an entry, stale or expired too, whose value is the one that had this version.
  ///
  /// It does not hold for an entry that was invalidated: see ``Store/invalidate(tag:durability:)``.
  public static func unchanged(since version: Version) -> Condition {
    Condition(rule: .unchanged(version))
  }

  /// The same for the version of an entry: it was not saved again since `entry` was read.
  ///
  /// ```swift
  /// let isSaved = try genres.save(list, for: "all", if: .unchanged(since: entry))
  /// ```
  public static func unchanged<Value>(since entry: Entry<Value>) -> Condition {
    .unchanged(since: entry.version)
  }

  /// Whether the condition holds for a record, or for none.
  func holds(for record: Record?, _ freshness: Freshness) -> Bool {
    switch rule {
    case .absent: record == nil || freshness == .expired
    case .present: record != nil && freshness != .expired
    case .unchanged(let version):
      record.map { Version($0) == version && !$0.isInvalidated } ?? false
    }
  }
}
