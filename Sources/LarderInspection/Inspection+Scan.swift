import Foundation
import Larder

/// What a scan reads of payloads.
enum PayloadReading {
  /// Those in segments are not read, and their records not checked.
  case asFound
  /// All are read, and their records checked.
  case checked
  /// All are read, and the records found have their bytes.
  case kept
}

/// An item of a scan over records.
enum ScanItem {
  case record(FoundRecord)
  /// A part of the files that cannot be read, with unknown keys.
  case unreadable(in: KnownCache?, message: String)

  var state: RecordState {
    switch self {
    case .record(let record): record.state
    case .unreadable: .damaged
    }
  }
}

/// Where a scan ended.
struct ScanEnd {
  /// The number of keys that it looked at.
  var keys = 0
  /// The record that a limit left out first; nil if no limit ended the scan.
  var next: RecordPlace?
  /// The share of the selection that is before ``next``, 0 to 1; nil if it is unknown.
  var share: Double?
}

extension Inspection {
  /// Calls `body` for each record of a selection, by cache and key, until it returns false.
  ///
  /// - Returns: Where it ended.
  /// - Complexity: One step and one checksum for each record. One record is in memory at a time.
  @discardableResult
  func forEachItem(
    in selection: Selection, keys form: KeyForm, payloads: PayloadReading = .asFound,
    _ body: (ScanItem) throws(InspectionError) -> Bool
  ) throws(InspectionError) -> ScanEnd {
    var end = ScanEnd()
    let filter = try RecordFilter(selection, keys: form, at: now)
    var left = selection.limit ?? .max
    let (caches, damage) = try caches(in: selection)
    for message in self.damage + damage {
      guard try body(.unreadable(in: nil, message: message)) else { return end }
    }
    progress?.restart()
    var unstarted = selection
    unstarted.start = nil
    let whole =
      caches.count == 1
      ? try range(of: unstarted, in: caches[0], keys: form)
      : EngineRange(prefix: [KeySpace.records.rawValue])
    for cache in caches {
      guard let range = try range(of: selection, in: cache, keys: form) else { continue }
      let continues = try scan(
        cache, range, isReversed: selection.isReversed, payloads: payloads, whole: whole,
        keepsTags: selection.tag != nil
      ) { item throws(InspectionError) in
        guard case .record(let record) = item else { return try body(item) }
        let isSelected = filter.selects(record)
        guard end.keys < selection.scanLimit ?? .max, left > 0 || !isSelected else {
          end.next = RecordPlace(cache: cache.id, key: record.key)
          return false
        }
        end.keys += 1
        guard isSelected else { return true }
        left -= 1
        return try body(item)
      }
      guard continues else { break }
    }
    if let whole, let next = end.next {
      end.share = share(
        of: whole, through: next.physicalKey.span.bytes, isReversed: selection.isReversed)
    }
    return end
  }

  /// The selected caches, in the order of their records, and the damage that may hide others.
  func caches(
    in selection: Selection
  ) throws(InspectionError) -> (caches: [KnownCache], damage: [String]) {
    if let name = selection.cache { return ([try catalog.cache(called: name)], []) }
    var ids = Set(catalog.caches.map(\.id))
    var damage: [String] = []
    do throws(StoreError) {
      let cursor = try engine.cursor(over: EngineRange(prefix: [KeySpace.records.rawValue]))
      while try cursor.next() {
        let (id, key) = cursor.withEntry { key, _ in
          var offset = 1
          return (readVarint(key, at: &offset), [UInt8](key))
        }
        let next: [UInt8]?
        if let id {
          ids.insert(id)
          next = EngineRange.successor(ofPrefix: KeySpace.records.prefix(ofCache: id))
        } else {
          damage.append("the record key \(KeyForm.hex(key).shortened) belongs to no cache")
          next = key + [0]
        }
        guard let next else { break }
        try cursor.seek(to: next.span.bytes)
      }
    } catch .corrupt(_, _, let message?) {
      damage.append(withUserPath(message))
    } catch {
      throw failure(error)
    }
    let ordered = ids.subtracting(catalog.cleared).sorted { a, b in
      KeySpace.records.prefix(ofCache: a).lexicographicallyPrecedes(
        KeySpace.records.prefix(ofCache: b))
    }
    let caches = ordered.map(catalog.cache(numbered:))
    return (selection.isReversed ? caches.reversed() : caches, damage)
  }

  /// The physical range of a selection in a cache; nil if it cannot hold a key of the cache.
  private func range(
    of selection: Selection, in cache: KnownCache, keys form: KeyForm
  ) throws(InspectionError) -> EngineRange? {
    let isNamed = selection.cache != nil
    func bound(
      _ text: String, _ read: (String, KeyKind) -> [UInt8]?
    ) throws(InspectionError) -> [UInt8]? {
      if let bytes = read(text, cache.keyKind) { return bytes }
      guard isNamed else { return nil }
      throw InspectionError(notKey: text, of: cache)
    }
    let start = KeySpace.records.prefix(ofCache: cache.id)
    var range = EngineRange(prefix: start)
    if let text = selection.prefix {
      guard let bytes = try bound(text, form.prefix) else { return nil }
      range = EngineRange(prefix: start + bytes)
    }
    if let text = selection.from {
      guard let bytes = try bound(text, form.bytes) else { return nil }
      if range.lower.lexicographicallyPrecedes(start + bytes) { range.lower = start + bytes }
    }
    if let text = selection.to {
      guard let bytes = try bound(text, form.bytes) else { return nil }
      let upper = start + bytes
      if range.upper.map(upper.lexicographicallyPrecedes) ?? true { range.upper = upper }
    }
    if let place = selection.start?.physicalKey {
      if !selection.isReversed, range.lower.lexicographicallyPrecedes(place) {
        range.lower = place
      }
      let after = place + [0]
      if selection.isReversed, range.upper.map(after.lexicographicallyPrecedes) ?? true {
        range.upper = after
      }
    }
    let isEmpty = range.upper.map { !range.lower.lexicographicallyPrecedes($0) } ?? false
    return isEmpty ? nil : range
  }

  /// The share of a range before a key, or after it for a reversed scan; nil if it is unknown.
  func share(of range: EngineRange, through key: RawSpan, isReversed: Bool = false) -> Double? {
    var before = range
    before.upper = [UInt8](key)
    do throws(StoreError) {
      let whole = try engine.approximateBytes(in: range)
      guard whole > 0 else { return nil }
      let share = min(Double(try engine.approximateBytes(in: before)) / Double(whole), 1)
      return isReversed ? 1 - share : share
    } catch {
      // The scan itself meets the error, too.
      return nil
    }
  }

  /// Scans a range of a cache, a part of the range `whole`.
  ///
  /// - Returns: False if `body` stopped the scan.
  private func scan(
    _ cache: KnownCache, _ range: EngineRange, isReversed: Bool, payloads: PayloadReading,
    whole: EngineRange?, keepsTags: Bool, _ body: (ScanItem) throws(InspectionError) -> Bool
  ) throws(InspectionError) -> Bool {
    let prefixCount = KeySpace.records.prefix(ofCache: cache.id).count
    let cursor: any EngineCursor
    do {
      cursor =
        try payloads == .asFound ? engine.headCursor(over: range) : engine.cursor(over: range)
      if isReversed { try cursor.seekToEnd() }
    } catch {
      throw failure(error)
    }
    while true {
      let isOnRecord: Bool
      do throws(StoreError) {
        isOnRecord = try isReversed ? cursor.previous() : cursor.next()
      } catch .corrupt(_, _, let message?) {
        return try body(.unreadable(in: cache, message: withUserPath(message)))
      } catch {
        throw failure(error)
      }
      guard isOnRecord else { return true }
      let count = cursor.valueCount
      var isWanted = true
      let record = cursor.withEntry { key, value in
        isWanted =
          progress?.step {
            whole.flatMap { share(of: $0, through: key, isReversed: isReversed) }
          } ?? true
        let userKey = [UInt8](key.extracting(prefixCount..<key.byteCount))
        return FoundRecord(
          value, of: count, under: key, key: userKey, in: cache, endedBy: catalog.invalidatedTags,
          at: now, isKept: payloads == .kept || keepsTags)
      }
      guard isWanted else { throw InspectionError(.io, "the reader of the result has left") }
      guard try body(.record(record)) else { return false }
    }
  }
}

/// Which of the records in its ranges a selection selects.
private struct RecordFilter {
  private let selection: Selection
  private let form: KeyForm
  private let glob: Glob?
  private let now: Date

  init(_ selection: Selection, keys form: KeyForm, at now: Date) throws(InspectionError) {
    (self.selection, self.form, self.now) = (selection, form, now)
    glob = try selection.match.map { pattern throws(InspectionError) in try Glob(pattern) }
  }

  func selects(_ record: FoundRecord) -> Bool {
    if let glob, !glob.matches(form.text(of: record.key, kind: record.cache.keyKind)) {
      return false
    }
    guard selection.states.contains(record.state) else { return false }
    if let tag = selection.tag, record.tags?.texts.contains(tag) != true { return false }
    if let least = selection.leastBytes, record.entryBytes < least { return false }
    guard let least = selection.leastAge else { return true }
    guard case .success(let content) = record.content else { return false }
    return now.timeIntervalSince(content.savedAt) >= least
  }
}
