import Synchronization

/// The keys of a store that are being loaded, each with the ticket of the save that follows, and
/// those that are remembered as absent, each with the ticket of that memory.
///
/// A change of a key that is made while it is loaded wins: it revokes the ticket. The leader of the
/// commit queue notes changes in the order of commits, before it applies them. So a save after the
/// change fails at its ticket, and the change comes after a save that had its turn before.
///
/// The leader notes them again before the writer returns. A load that was registered in between may
/// have read the disk before the change was applied, and callers that come later must not join it.
final class LoadRegister: Sendable {
  /// The maximum number of tags whose invalidations are remembered one by one.
  private static let tagLimit = 10_000

  fileprivate struct State {
    /// The keys by the ids of their caches.
    var caches: [UInt64: RegisteredKeys] = [:]
    var count = 0
    /// The tickets that depend on each tag.
    var tagged: [[UInt8]: Set<WriteTicket>] = [:]
    var invalidations: UInt64 = 0
    /// The number of the last invalidation of each tag, while any key is registered.
    var tags: [[UInt8]: UInt64] = [:]
    /// The invalidations that were forgotten: up to this number.
    var forgotten: UInt64 = 0
    var isClosed = false
  }

  private let state = Lock(State())
  private let owner = ProcessOwner()
  private let count = Atomic<Int>(0)

  /// Whether no key is registered; writes skip the register then.
  var isEmpty: Bool { count.load(ordering: .sequentiallyConsistent) == 0 }
}

// MARK: - Loads

/// A cache that loads, as the register knows it.
protocol LoadOwner: AnyObject, Sendable {
  /// Ends all loads, because the store is closed.
  func close()
}

/// A load of a key, as it is registered.
fileprivate struct RegisteredLoad {
  let ticket: WriteTicket
  /// The number of invalidations before the registration.
  let start: UInt64
  var tags: Set<[UInt8]> = []
  /// Whether an earlier load of the key was saved since.
  var isBehindSave = false
  /// Whether another machine has changed the key since the tier was last asked for it.
  var isChangedElsewhere = false
  /// Nil if the key is remembered as absent.
  weak var owner: (any LoadOwner)?
}

extension LoadRegister {
  /// Registers a key before its entry is read; returns false if the store is closed.
  ///
  /// The key may have other loads, which began earlier and which callers no longer join.
  func add(_ key: RecordKey, _ ticket: WriteTicket, of owner: any LoadOwner) -> Bool {
    state.withLock { state in
      guard !state.isClosed else { return false }
      let registration = RegisteredLoad(ticket: ticket, start: state.invalidations, owner: owner)
      state.caches[key.cacheID, default: RegisteredKeys()].add(key.bytes, registration)
      state.count += 1
      count.store(state.count, ordering: .sequentiallyConsistent)
      return true
    }
  }

  /// Makes the ticket depend on tags, from its registration on.
  func add(tags: [[UInt8]], to key: RecordKey, _ ticket: WriteTicket) {
    guard !tags.isEmpty else { return }
    state.withLock { state in
      var start = UInt64.max
      state.caches[key.cacheID]?.change(key.bytes, ticket) { registration in
        start = registration.start
        registration.tags.formUnion(tags)
      }
      // Not registered.
      guard start < .max else { return }
      let isInvalidated =
        start < state.forgotten || tags.contains { start < state.tags[$0] ?? 0 }
      if isInvalidated { ticket.revoke() }
      for tag in tags { state.tagged[tag, default: []].insert(ticket) }
    }
  }

  /// Whether no other load of the key is registered, or was saved since.
  func isAlone(_ key: RecordKey) -> Bool {
    state.withLock { $0.caches[key.cacheID]?.isAlone(key.bytes) ?? true }
  }

  /// Notes that a load has ended and its key is remembered as absent.
  func remember(_ key: RecordKey, _ ticket: WriteTicket) {
    state.withLock { state in
      var tags: Set<[UInt8]> = []
      state.caches[key.cacheID]?.change(key.bytes, ticket) { registration in
        swap(&tags, &registration.tags)
        registration.owner = nil
        if registration.isBehindSave || registration.isChangedElsewhere { ticket.revoke() }
      }
      state.forget(tags, of: ticket)
    }
  }

  /// Ends the registration of a key by a load.
  func remove(_ key: RecordKey, _ ticket: WriteTicket) {
    state.withLock { state in
      guard let removed = state.caches[key.cacheID]?.remove(key.bytes, ticket) else { return }
      if state.caches[key.cacheID]?.isEmpty == true { state.caches[key.cacheID] = nil }
      state.forget(removed.tags, of: ticket)
      state.count -= 1
      if state.count == 0 { state.tags = [:] }
      count.store(state.count, ordering: .sequentiallyConsistent)
    }
  }

  /// Ends all loads; none begins afterwards.
  func close() {
    // In a forked child, the lock may be held by a thread that does not exist there.
    guard owner.isCurrent else { return }
    let owners = state.withLock { state in
      state.isClosed = true
      var owners: [ObjectIdentifier: any LoadOwner] = [:]
      for keys in state.caches.values {
        for owner in keys.owners { owners[ObjectIdentifier(owner)] = owner }
      }
      return Array(owners.values)
    }
    for owner in owners { owner.close() }
  }
}

extension LoadRegister.State {
  /// Ends the dependence of a ticket on tags.
  fileprivate mutating func forget(_ tags: Set<[UInt8]>, of ticket: WriteTicket) {
    for tag in tags {
      tagged[tag]?.remove(ticket)
      if tagged[tag]?.isEmpty == true { tagged[tag] = nil }
    }
  }
}

/// The registered keys of one cache.
///
/// They are in order as far as a removed range needs that: 10,000 keys that are remembered as
/// absent do not slow the removal of a range without them.
fileprivate struct RegisteredKeys {
  /// The registrations of each key, in their order.
  private var keys: [[UInt8]: [RegisteredLoad]] = [:]
  /// Every key whose tickets may be valid, and some that were removed: in order, and as they came.
  private var ordered: [[UInt8]] = []
  private var added: [[UInt8]] = []

  var isEmpty: Bool { keys.isEmpty }
  var owners: [any LoadOwner] { keys.values.joined().compactMap(\.owner) }

  mutating func add(_ key: [UInt8], _ registration: RegisteredLoad) {
    keys[key, default: []].append(registration)
    added.append(key)
    if ordered.count + added.count > 2 * keys.count + 64 { putInOrder() }
  }

  mutating func change(
    _ key: [UInt8], _ ticket: WriteTicket, _ change: (inout RegisteredLoad) -> Void
  ) {
    guard let index = keys[key]?.firstIndex(where: { $0.ticket === ticket }) else { return }
    change(&keys[key, default: []][index])
  }

  mutating func remove(_ key: [UInt8], _ ticket: WriteTicket) -> RegisteredLoad? {
    guard let index = keys[key]?.firstIndex(where: { $0.ticket === ticket }) else { return nil }
    defer { if keys[key]?.isEmpty == true { keys[key] = nil } }
    return keys[key]?.remove(at: index)
  }

  func isAlone(_ key: [UInt8]) -> Bool {
    guard let registrations = keys[key] else { return true }
    return registrations.count == 1 && !registrations[0].isBehindSave
  }

  func isChangedElsewhere(_ key: [UInt8], _ ticket: WriteTicket) -> Bool {
    keys[key]?.first { $0.ticket === ticket }?.isChangedElsewhere ?? false
  }

  /// Notes that a load is saved: earlier ones of the key are overtaken.
  mutating func didSave(_ key: [UInt8], _ ticket: WriteTicket) {
    let places = keys[key]?.indices ?? 0..<0
    guard let own = keys[key]?.firstIndex(where: { $0.ticket === ticket }) else { return }
    for place in places[..<own] { keys[key]?[place].ticket.revoke() }
    for place in places[own...] { keys[key]?[place].isBehindSave = place > own }
  }

  func revoke(_ key: [UInt8]) {
    for registration in keys[key] ?? [] { registration.ticket.revoke() }
  }

  /// Forgets that a key is absent; nil for all keys.
  ///
  /// A load of the key that is under way does not remember it either.
  mutating func changedElsewhere(_ key: [UInt8]?) {
    for key in key.map({ [$0] }) ?? Array(keys.keys) {
      for place in keys[key]?.indices ?? 0..<0 {
        keys[key]?[place].isChangedElsewhere = true
        if keys[key]?[place].owner == nil { keys[key]?[place].ticket.revoke() }
      }
    }
  }

  mutating func revokeAll() {
    for registration in keys.values.joined() { registration.ticket.revoke() }
    (ordered, added) = ([], [])
  }

  /// Revokes the tickets of the keys in a range.
  mutating func revoke(in range: EngineRange) {
    if added.count > 32 { putInOrder() }
    while let key = added.popLast() {
      let place = ordered.firstPlace { !$0.lexicographicallyPrecedes(key) }
      if place == ordered.count || ordered[place] != key { ordered.insert(key, at: place) }
    }
    let start = ordered.firstPlace { !$0.lexicographicallyPrecedes(range.lower) }
    let end =
      range.upper.map { upper in ordered.firstPlace { !$0.lexicographicallyPrecedes(upper) } }
      ?? ordered.count
    guard start < end else { return }
    for key in ordered[start..<end] { revoke(key) }
    ordered.removeSubrange(start..<end)
  }

  private mutating func putInOrder() {
    let sorted = (ordered + added).sorted { $0.lexicographicallyPrecedes($1) }
    (ordered, added) = ([], [])
    for key in sorted where keys[key] != nil && ordered.last != key { ordered.append(key) }
  }
}

extension [[UInt8]] {
  /// The place of the first key of an ordered array that is beyond a limit.
  fileprivate func firstPlace(where isBeyond: ([UInt8]) -> Bool) -> Int {
    var (lower, upper) = (0, count)
    while lower < upper {
      let middle = (lower + upper) / 2
      if isBeyond(self[middle]) { upper = middle } else { lower = middle + 1 }
    }
    return lower
  }
}

// MARK: - Changes

extension LoadRegister {
  /// Notes the changes of a batch that is about to be applied, or whose write has ended.
  ///
  /// Changes that the store makes by itself, such as deleting expired entries, carry a note, and do
  /// not count. The rows of a load's own save depend on its ticket; they overtake only earlier
  /// loads. A removal counts even if there is nothing to remove.
  func noteChanges(of batch: borrowing WriteBatch, without failed: Set<Int>) {
    batch.bytes.withBytes { bytes in
      for row in batch.rows where row.note == 0 {
        let key = UnsafeRawBufferPointer(rebasing: bytes[row.key])
        if key.first == KeySpace.records.rawValue {
          if let requirement = row.requirement,
            let ticket = batch.requirements[requirement].condition.ticket
          {
            if row.isKept(without: failed) { saved(key, ticket) }
          } else if row.kind == .remove || row.isKept(without: failed) {
            changed(key)
          }
        } else if row.kind == .put {
          if let id = Metadata.reclaimedID(in: key.bytes) { cleared(cacheID: id) }
          if key.starts(with: Metadata.tagPrefix) {
            invalidated(tag: Array(key.dropFirst(Metadata.tagPrefix.count)))
          }
        }
      }
    }
  }

  /// Notes that another machine has changed a key; nil for all keys of a cache.
  ///
  /// The key is not remembered as absent, and a load that is under way does not save its value
  /// where the tier had nothing. Where it had something, the tier decides, by the version.
  func changedElsewhere(_ key: RecordKey?, ofCache id: UInt64) {
    guard !isEmpty else { return }
    state.withLock { $0.caches[id]?.changedElsewhere(key?.bytes) }
  }

  /// Notes that the tier has replied to a load: the load begins with what the tier has now.
  func tierReplied(_ key: RecordKey, _ ticket: WriteTicket) {
    state.withLock { state in
      state.caches[key.cacheID]?.change(key.bytes, ticket) { $0.isChangedElsewhere = false }
    }
  }

  /// Whether another machine has changed the key of a load since the tier replied to it.
  func isChangedElsewhere(_ key: RecordKey, _ ticket: WriteTicket) -> Bool {
    state.withLock { $0.caches[key.cacheID]?.isChangedElsewhere(key.bytes, ticket) ?? false }
  }

  /// Notes that the keys of a range are about to be removed, or were removed.
  ///
  /// A save that had its turn before is applied before the next commit, which the caller makes.
  func noteRemoval(of range: EngineRange, fromCache id: UInt64) {
    guard !isEmpty else { return }
    state.withLock { $0.caches[id]?.revoke(in: range) }
  }

  private func changed(_ key: UnsafeRawBufferPointer) {
    guard let key = RecordKey(key.bytes) else { return }
    state.withLock { $0.caches[key.cacheID]?.revoke(key.bytes) }
  }

  private func saved(_ key: UnsafeRawBufferPointer, _ ticket: WriteTicket) {
    guard let key = RecordKey(key.bytes) else { return }
    state.withLock { $0.caches[key.cacheID]?.didSave(key.bytes, ticket) }
  }

  private func cleared(cacheID: UInt64) { state.withLock { $0.caches[cacheID]?.revokeAll() } }

  private func invalidated(tag: [UInt8]) {
    state.withLock { state in
      state.invalidations += 1
      if state.tags.count >= Self.tagLimit {
        state.forgotten = state.invalidations
        state.tags = [:]
      }
      state.tags[tag] = state.invalidations
      for ticket in state.tagged.removeValue(forKey: tag) ?? [] { ticket.revoke() }
    }
  }
}
