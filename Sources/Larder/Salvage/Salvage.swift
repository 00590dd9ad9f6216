import Foundation

/// Copies the readable rows of a damaged store to a new one.
///
/// A LevelDB iterator skips damaged blocks, so it may return entries of older tables that were
/// replaced or removed since. A lookup fails instead. So the iterator is used only to find keys,
/// and each row that is copied comes from a lookup of its key.
///
/// A record is copied byte for byte, with its dates, its schema version and its commit sequence. It
/// is noted by the first sweep of the new store. Byte counts and migration
/// marks are not copied: caches are counted again when they are opened, and migrations restart.
struct Salvage: ~Copyable {
  private let source: LevelDBEngine
  private let target: LevelDBEngine
  private(set) var report = SalvageReport()

  private var caches: [UInt64: (name: String, registration: Registration)] = [:]
  private var cleared: Set<UInt64> = []
  /// The caches whose registrations are lost, and which have been given new ones.
  private var nameless: Set<UInt64> = []
  /// The rows of invalidated tags, by key; nil for a row that cannot be read.
  private var tagRows: [[UInt8]: [UInt8]?] = [:]
  private var nextID: UInt64 = 1
  private var lastSequence: UInt64 = 0
  /// Whether the store has data keys: without them, sealed entries cannot be read.
  private var hasDataKeys = false
  private var rows = WriteBatch()
  private var buffer = ValueBuffer()

  init(from source: LevelDBEngine, to target: LevelDBEngine) {
    (self.source, self.target) = (source, target)
  }

  /// Copies everything; before a record, in the same log, are the rows that protect it: the next
  /// free id, the registration of its cache, and the invalidated tags.
  mutating func run() throws(StoreError) {
    try readMetadata()
    try copyDataKeys()
    try writeMetadata()
    try copyUnshared()
    try copyRecords()
    try finish()
  }

  /// Reads the row under `key` into the buffer; false if it is missing or damaged.
  private mutating func find(_ key: [UInt8]) throws(StoreError) -> Bool {
    do throws(StoreError) {
      return try source.get(key.span.bytes, into: &buffer)
    } catch .corrupt {
      return false
    }
  }

  private var found: [UInt8] {
    buffer.withBytes { [UInt8]($0) }
  }
}

// MARK: - Metadata

extension Salvage {
  private mutating func readMetadata() throws(StoreError) {
    if try find(Metadata.format), let format = Metadata.number(in: found, under: Metadata.format),
      format > Metadata.formatVersion
    {
      throw .incompatible(
        "it has store format \(format); this version reads formats up to \(Metadata.formatVersion)")
    }
    if try find(Metadata.nextID) {
      nextID = Metadata.number(in: found, under: Metadata.nextID) ?? 1
    }
    if try find(CommitSequence.key), let sequence = CommitSequence.number(in: found) {
      lastSequence = sequence
    }
    let range = EngineRange(prefix: [KeySpace.metadata.rawValue])
    try visitKeys(in: range) { salvage, key throws(StoreError) in
      if let id = Metadata.reclaimedID(in: key.span.bytes) {
        salvage.cleared.insert(id)
        salvage.noteUse(of: id)
      } else if key.starts(with: Metadata.cachePrefix) {
        try salvage.readRegistration(under: key)
      } else if key.starts(with: Metadata.tagPrefix) {
        try salvage.readTag(under: key)
      }
    } losing: { salvage, _, _ in
      salvage.report.mayLackInvalidations = true
    }
  }

  /// Copies the keys of sealed records, and how much they have sealed.
  private mutating func copyDataKeys() throws(StoreError) {
    #if Encryption
      var dataKeys = try DataKeys(of: source, isDamaged: true)
      guard !dataKeys.keys.isEmpty else { return }
      hasDataKeys = true
      try dataKeys.write(to: target)
      for key in dataKeys.keys {
        let row = Metadata.sealedCount(key.id)
        let count = try find(row) ? Metadata.number(in: found, under: row) : nil
        // A data key whose count is lost seals no more.
        rows.putMetadata(count ?? StoreSeal.messageLimit, under: row)
      }
    #endif
  }

  private mutating func readRegistration(under key: [UInt8]) throws(StoreError) {
    let name = Metadata.cacheName(in: key)
    guard try find(key) else { return report.lostCaches.append(name) }
    switch Registration.read(found, under: key) {
    case .registration(let registration):
      caches[registration.id] = (name, registration)
      report.entries[name] = 0
      noteUse(of: registration.id)
    case .damaged: report.lostCaches.append(name)
    case .unsupported(let error):
      throw .incompatible("the registration of cache \(name) cannot be read: \(error)")
    }
  }

  private mutating func readTag(under key: [UInt8]) throws(StoreError) {
    let isWhole =
      try find(key) && InvalidatedTags().readRow(found.span.bytes, under: key.span.bytes)
    tagRows[key] = .some(isWhole ? found : nil)
    guard !isWhole else { return }
    report.endedTags.append(String(decoding: Metadata.tag(in: key), as: UTF8.self))
  }

  /// Notes an id that is in the store; true if it was above all others.
  @discardableResult private mutating func noteUse(of id: UInt64) -> Bool {
    guard id >= nextID, id < droppedCacheID else { return false }
    nextID = id + 1
    return true
  }

  private mutating func writeMetadata() throws(StoreError) {
    target.skipSequences(through: lastSequence)
    rows.putMetadata(Metadata.formatVersion, under: Metadata.format)
    rows.putMetadata(nextID, under: Metadata.nextID)
    for case (let key, let value?) in tagRows { rows.put(key.span.bytes, value.span.bytes) }
    endLostTags()
    for (name, registration) in caches.values { try put(registration, named: name) }
    try commit()
  }

  /// Ends all entries of tags of which nobody knows when they were invalidated, by new sequences.
  private mutating func endLostTags() {
    for case (let key, nil) in tagRows {
      rows.put(key.span.bytes, stamp: InvalidatedTags.stamp)
    }
  }

  private mutating func put(
    _ registration: Registration, named name: String
  ) throws(StoreError) {
    do {
      try rows.put(registration, ofCache: name)
    } catch {
      throw .io("the registration of cache \"\(name)\" cannot be encoded: \(error)")
    }
  }

  /// Continues the sequences behind those of the records, which may be above the row that is read
  /// first, if it is damaged.
  private mutating func finish() throws(StoreError) {
    try commit()
    target.skipSequences(through: lastSequence)
    rows.putMetadata(nextID, under: Metadata.nextID)
    endLostTags()
    try target.write(&rows, synced: true)
  }
}

// MARK: - Records

extension Salvage {
  /// Copies the rows of changes that a tier has not acknowledged.
  ///
  /// The value of a row does not matter, so a damaged one is written anew.
  private mutating func copyUnshared() throws(StoreError) {
    let range = EngineRange(prefix: [KeySpace.unshared.rawValue])
    try visitKeys(in: range) { salvage, key throws(StoreError) in
      // A cache without a registration gets another name, and so other keys in a tier.
      guard let id = RecordKey(key.span.bytes)?.cacheID, salvage.caches[id] != nil else { return }
      salvage.rows.put(key.span.bytes, stamp: Unshared.stamp)
      if salvage.rows.isFullSlice { try salvage.commit() }
    } losing: { _, _, _ in
    }
  }

  private mutating func copyRecords() throws(StoreError) {
    let range = EngineRange(prefix: [KeySpace.records.rawValue])
    try visitKeys(in: range) { salvage, key throws(StoreError) in
      try salvage.copyRecord(under: key)
    } losing: { salvage, after, before in
      salvage.noteLoss(after: after, before: before)
    }
  }

  private mutating func copyRecord(under physicalKey: [UInt8]) throws(StoreError) {
    guard let key = RecordKey(physicalKey.span.bytes), !cleared.contains(key.cacheID),
      key.cacheID < droppedCacheID
    else { return }
    let (name, registration) = try cache(numbered: key.cacheID)
    if nameless.contains(key.cacheID) { report.namelessEntries += 1 }
    do throws(StoreError) {
      guard try source.get(physicalKey.span.bytes, into: &buffer) else { return }
    } catch .corrupt {
      // The record is there, or a damaged newer table has something under its key.
      return noteLoss(of: key, in: registration, name)
    }
    let record: Result<Record, RecordFault> = buffer.withBytes { bytes in
      Result { () throws(RecordFault) in try Record(bytes, under: physicalKey.span.bytes) }
    }
    switch record {
    case .failure(.damaged): return noteLoss(of: key, in: registration, name)
    case .failure(.unsupported): put(physicalKey)
    case .success(let record) where record.isSealed && !hasDataKeys:
      return noteLoss(of: key, in: registration, name)
    case .success(let record):
      lastSequence = max(lastSequence, record.sequence)
      put(physicalKey)
    }
    report.entries[name, default: 0] += 1
    if rows.isFullSlice { try commit() }
  }

  /// The cache of records; if its registration is lost, one is made before the first of them.
  private mutating func cache(
    numbered id: UInt64
  ) throws(StoreError) -> (name: String, registration: Registration) {
    if let known = caches[id] { return known }
    let registration = try RecoveredSettings(ofCache: id, in: source).registration(id: id)
    let taken = Set(caches.values.map(\.name) + report.lostCaches)
    var name = "recovered-\(id)"
    while taken.contains(name) { name += "-again" }
    nameless.insert(id)
    caches[id] = (name, registration)
    report.entries[name] = 0
    if noteUse(of: id) { rows.putMetadata(nextID, under: Metadata.nextID) }
    try put(registration, named: name)
    return (name, registration)
  }

  private mutating func put(_ key: [UInt8]) {
    rows.put(key.span.bytes, found.span.bytes)
  }

  private mutating func commit() throws(StoreError) {
    guard !rows.isEmpty else { return }
    try target.write(&rows, synced: false)
    rows.reset()
  }

  private mutating func noteLoss(
    of key: RecordKey, in registration: Registration, _ name: String
  ) {
    let text = KeyKind(code: registration.keyKind).describe(key)
    report.losses.append(SalvageReport.Loss(cache: name, after: text, before: text))
  }

  /// Reports a loss between two readable keys, in every cache that it may concern.
  private mutating func noteLoss(after: [UInt8]?, before: [UInt8]?) {
    let (first, last) = (
      after.flatMap { RecordKey($0.span.bytes) }, before.flatMap { RecordKey($0.span.bytes) }
    )
    var ids = Set([first?.cacheID, last?.cacheID].compactMap(\.self))
    for id in caches.keys where id > first?.cacheID ?? 0 && id < last?.cacheID ?? .max {
      ids.insert(id)
    }
    for id in ids.sorted() {
      guard let (name, registration) = caches[id] else { continue }
      let kind = KeyKind(code: registration.keyKind)
      func text(_ key: RecordKey?) -> String? {
        key.flatMap { $0.cacheID == id ? kind.describe($0) : nil }
      }
      report.losses.append(
        SalvageReport.Loss(cache: name, after: text(first), before: text(last)))
    }
  }

  /// Visits the readable keys in `range`, and reports each part that cannot be read to `lose`.
  ///
  /// The iterator restarts after each such part, so that the next one is found, too.
  private mutating func visitKeys(
    in range: EngineRange,
    _ visit: (inout Salvage, [UInt8]) throws(StoreError) -> Void,
    losing lose: (inout Salvage, _ after: [UInt8]?, _ before: [UInt8]?) -> Void
  ) throws(StoreError) {
    var last: [UInt8]?
    var rest = range
    while true {
      let cursor = try source.cursor(over: rest)
      var next: [UInt8]?
      do throws(StoreError) {
        while try cursor.next() {
          let key = cursor.withEntry { key, _ in [UInt8](key) }
          guard cursor.isComplete else {
            next = key
            break
          }
          try visit(&self, key)
          last = key
        }
      } catch .corrupt {
        lose(&self, last, nil)
        return
      }
      guard let key = next else { return }
      lose(&self, last, key)
      // The value that the failed iterator shows may be old; `visit` looks the key up.
      try visit(&self, key)
      last = key
      rest.lower = key + [0]
    }
  }
}
