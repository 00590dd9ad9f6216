/// What is remembered of loads that have ended: keys without a value, and failures.
///
/// Two generations of up to 5,000 keys each bound it: when the younger one is full, the older one
/// is forgotten.
struct LoadMemos {
  typealias Key = LoadMachine.Key

  enum Memo {
    case absent
    case failure(any Error)
  }

  static let limit = 10_000

  private var young: [Key: (memo: Memo, until: Duration)] = [:]
  private var old: [Key: (memo: Memo, until: Duration)] = [:]

  private func memo(of key: Key, at now: Duration) -> Memo? {
    guard let found = young[key] ?? old[key], now < found.until else { return nil }
    return found.memo
  }

  func isAbsent(_ key: Key, at now: Duration) -> Bool {
    if case .absent? = memo(of: key, at: now) { true } else { false }
  }

  func failure(of key: Key, at now: Duration) -> (any Error)? {
    if case .failure(let error)? = memo(of: key, at: now) { error } else { nil }
  }

  /// Remembers a key; returns the absent keys that are forgotten instead.
  mutating func set(_ memo: Memo, of key: Key, until: Duration) -> [Key] {
    var forgotten = remove(key)
    if young.count >= Self.limit / 2 {
      forgotten += old.absentKeys
      (old, young) = (young, [:])
    }
    young[key] = (memo, until)
    return forgotten
  }

  /// Forgets a key if it is absent; returns it then.
  mutating func removeAbsence(of key: Key) -> [Key] {
    guard case .absent? = (young[key] ?? old[key])?.memo else { return [] }
    return remove(key)
  }

  mutating func removeFailure(of key: Key) {
    if case .failure? = (young[key] ?? old[key])?.memo { _ = remove(key) }
  }

  /// Forgets a key; returns it if it was absent.
  private mutating func remove(_ key: Key) -> [Key] {
    let found = young.removeValue(forKey: key) ?? old.removeValue(forKey: key)
    if case .absent? = found?.memo { return [key] }
    return []
  }

  mutating func removeAll() -> [Key] {
    defer { (young, old) = ([:], [:]) }
    return young.absentKeys + old.absentKeys
  }
}

extension [LoadMemos.Key: (memo: LoadMemos.Memo, until: Duration)] {
  fileprivate var absentKeys: [LoadMemos.Key] {
    filter { if case .absent = $0.value.memo { true } else { false } }.map(\.key)
  }
}
