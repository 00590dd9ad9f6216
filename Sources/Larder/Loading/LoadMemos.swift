/// What is remembered of loads that have ended: keys without a value, failures, and keys whose
/// replies are not shared.
///
/// Two generations of up to 5,000 keys each bound it: when the younger one is full, the older one
/// is forgotten.
struct LoadMemos: Sendable {
  typealias Key = RecordKey
  typealias Absence = (key: Key, ticket: WriteTicket)

  enum Memo: Sendable {
    /// With the ticket that a change of the key revokes.
    case absent(WriteTicket)
    case failure(any Error)
    case notShared
  }

  static let limit = 10_000

  private var young: [Key: (memo: Memo, until: Duration)] = [:]
  private var old: [Key: (memo: Memo, until: Duration)] = [:]

  private func memo(of key: Key, at now: Duration) -> Memo? {
    guard let found = young[key] ?? old[key], now < found.until else { return nil }
    return found.memo
  }

  /// Whether anything is remembered of a key, even if it is too old to be used.
  func has(_ key: Key) -> Bool { young[key] != nil || old[key] != nil }

  /// The ticket of a key that is remembered as absent; nil if it is not.
  func absence(of key: Key, at now: Duration) -> WriteTicket? {
    if case .absent(let ticket)? = memo(of: key, at: now) { ticket } else { nil }
  }

  func failure(of key: Key, at now: Duration) -> (any Error)? {
    if case .failure(let error)? = memo(of: key, at: now) { error } else { nil }
  }

  func isNotShared(_ key: Key, at now: Duration) -> Bool {
    if case .notShared? = memo(of: key, at: now) { true } else { false }
  }

  /// Remembers a key; returns the absences that are forgotten instead.
  mutating func set(_ memo: Memo, of key: Key, until: Duration) -> [Absence] {
    var forgotten = remove(key)
    if young.count >= Self.limit / 2 {
      forgotten += old.absences
      (old, young) = (young, [:])
    }
    young[key] = (memo, until)
    return forgotten
  }

  /// Forgets a key if it is absent; returns it then.
  mutating func removeAbsence(of key: Key) -> [Absence] {
    guard case .absent? = (young[key] ?? old[key])?.memo else { return [] }
    return remove(key)
  }

  /// Forgets what a reply ends: a failure, and that replies were not shared.
  mutating func removeOutcome(of key: Key) {
    switch (young[key] ?? old[key])?.memo {
    case .failure?, .notShared?: _ = remove(key)
    case .absent?, nil: break
    }
  }

  /// Forgets a key; returns it if it was absent.
  private mutating func remove(_ key: Key) -> [Absence] {
    let found = young.removeValue(forKey: key) ?? old.removeValue(forKey: key)
    if case .absent(let ticket)? = found?.memo { return [(key, ticket)] }
    return []
  }

  mutating func removeAll() -> [Absence] {
    defer { (young, old) = ([:], [:]) }
    return young.absences + old.absences
  }
}

extension [LoadMemos.Key: (memo: LoadMemos.Memo, until: Duration)] {
  fileprivate var absences: [LoadMemos.Absence] {
    compactMap { if case .absent(let ticket) = $0.value.memo { ($0.key, ticket) } else { nil } }
  }
}
