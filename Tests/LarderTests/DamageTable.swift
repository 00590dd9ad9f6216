import LarderEngine
import LarderTestSupport
import SimulatedDisk

@testable import Larder

/// What a byte of a file has come to, or all of the file.
enum DamageKind: CaseIterable, Sendable {
  case flippedBit, inverted, zeroed, zeroedToTheEnd, cut, missing
}

/// One change of one file.
struct ByteDamage: Sendable, CustomStringConvertible {
  let path: String
  let offset: Int
  let kind: DamageKind

  var description: String { "\(path) \(kind) at \(offset)" }

  /// Damages the file; false when that changes nothing.
  func apply(to disk: SimulatedDisk) throws -> Bool {
    if kind == .missing {
      try SimulatedFiles(disk).remove(path)
      return true
    }
    let old = disk.bytes(of: path) ?? []
    var new = old
    switch kind {
    case .flippedBit: new[offset] ^= 1 << UInt8(offset % 8)
    case .inverted: new[offset] ^= 0xFF
    case .zeroed: new[offset] = 0
    case .zeroedToTheEnd:
      new.replaceSubrange(offset..., with: repeatElement(0, count: new.count - offset))
    case .cut, .missing: new.removeSubrange(offset...)
    }
    disk.setBytes(new, of: path)
    return new != old
  }

  /// Every one there is of the files that a specimen is for.
  static func all(in specimen: DamageSpecimen) -> [ByteDamage] {
    let paths = specimen.disk.names.filter { path in
      let file = DamagedFile(path, in: specimen)
      return switch specimen.shape {
      case .closed: true
      case .compacted: file == .manifest || file == .table
      case .twoLogs: file == .olderLog || file == .lastLog
      case .halfRecovered: file == .olderLog || file == .lastLog || file == .aside
      }
    }
    return paths.flatMap { path in
      let bytes = (0..<(specimen.disk.bytes(of: path)?.count ?? 0)).flatMap { offset in
        DamageKind.allCases.filter { $0 != .missing }.map { kind in
          ByteDamage(path: path, offset: offset, kind: kind)
        }
      }
      return bytes + [ByteDamage(path: path, offset: 0, kind: .missing)]
    }
  }
}

/// What users meet in a damaged store.
enum DamageOutcome: String, CaseIterable, Sendable {
  /// All is as if nothing had happened.
  case right
  /// Opening the store, or its cache, throws.
  case refused
  /// Some keys throw, each for itself; the others have the right values, and so has every scan.
  case named
  /// The exact state after an earlier commit, and `recovery` says that something is gone.
  case earlier
  /// All is right, and yet `recovery` says that something is gone.
  case reported
  /// The exact state after an earlier commit, and nobody says so.
  case unsaid
}

/// The kinds of files, and what may become of a store when one of them is damaged.
enum DamagedFile: String, CaseIterable, Sendable {
  case marker, lock, current, manifest, table, olderLog, lastLog, aside

  init(_ path: String, in specimen: DamageSpecimen) {
    let name = String(path.dropFirst(DamageSpecimen.directory.count + 1))
    self =
      switch name {
      case "LARDER": .marker
      case "LARDER.lock", "LOCK": .lock
      case "CURRENT": .current
      case _ where name.hasPrefix(Recovery.asideName): .aside
      case _ where name.hasPrefix("MANIFEST"): .manifest
      case _ where name.hasSuffix(".log"):
        path == DamageSpecimen.logs(on: specimen.disk).last ? .lastLog : .olderLog
      default: .table
      }
  }

  /// The table: whatever is not in it is a broken promise.
  ///
  /// Three things cannot be told from what never happened, and so are not said:
  ///
  /// - a last log that ends between two records: it looks as if the later ones were not written;
  /// - a last log that is missing while an older one is still needed: LevelDB tells its `MANIFEST`
  ///   of a new log only when the older one has become a table;
  /// - damage in the last record of an older log is what a power loss leaves, and is taken for it,
  ///   although what lies in later logs shows that the system went on: they are set aside, too.
  func allows(
    _ outcome: DamageOutcome, of damage: ByteDamage, in specimen: DamageSpecimen
  ) -> Bool {
    switch (self, outcome) {
    case (.marker, .refused), (.current, .refused), (.lock, .right): true
    case (.aside, .right): specimen.shape != .halfRecovered
    case (.aside, .earlier): specimen.shape == .halfRecovered
    case (.manifest, .refused): true
    case (.table, .right), (.table, .named), (.table, .refused): true
    case (.olderLog, .refused), (.lastLog, .refused): true
    case (.olderLog, .earlier), (.lastLog, .earlier): reachesTheEnd(damage, in: specimen)
    case (.lastLog, .unsaid), (.olderLog, .unsaid): mayBeUnsaid(damage, in: specimen)
    default: false
    }
  }

  /// Whether no whole record lies behind the damage.
  private func reachesTheEnd(_ damage: ByteDamage, in specimen: DamageSpecimen) -> Bool {
    switch damage.kind {
    case .cut, .zeroedToTheEnd, .missing: true
    default: damage.offset >= specimen.lastRecords[damage.path] ?? 0
    }
  }

  private func mayBeUnsaid(_ damage: ByteDamage, in specimen: DamageSpecimen) -> Bool {
    switch damage.kind {
    case .cut:
      // In a recovery that was cut short the last log is empty, and the older one stands for it.
      (self == .lastLog || specimen.shape == .halfRecovered)
        && specimen.edges[damage.path]?.contains(damage.offset) == true
    case .missing: self == .lastLog && specimen.shape == .twoLogs
    default: false
    }
  }
}

/// What became of a damaged store, by looking at all of it.
struct DamageFinding {
  let outcome: DamageOutcome
  /// What no user may ever see.
  var violation: String?

  /// Damages a copy of the store, and opens and reads it; nil when nothing is changed by it.
  init?(of damage: ByteDamage, in specimen: DamageSpecimen) throws {
    let disk = specimen.disk.copy()
    guard try damage.apply(to: disk) else { return nil }
    let before = disk.hash
    let opened: DamageSpecimen.Opened
    do {
      opened = try DamageSpecimen.open(disk)
    } catch {
      outcome = .refused
      violation = Self.violation(ofRefusal: error, of: damage, in: specimen)
      if violation == nil, disk.hash != before,
        DamagedFile(damage.path, in: specimen) != .table
      {
        violation = "refused, and changed: \(error)"
      }
      return
    }
    let reading = DamageReading(of: opened.cache, keys: specimen.keys)
    let isReported = opened.store.recovery != nil
    outcome = reading.outcome(in: specimen, isReported: isReported)
    violation = reading.violation(in: specimen, isReported: isReported)
    // What is left goes on as a store does: one in some is enough to show it.
    if violation == nil, (damage.offset + damage.path.utf8.count) % 8 == 0 {
      violation = try Self.violation(ofGoingOnWith: opened, disk, reading, specimen)
    } else {
      try opened.store.close()
    }
  }

  private static func violation(
    ofRefusal error: any Error, of damage: ByteDamage, in specimen: DamageSpecimen
  ) -> String? {
    switch error {
    case StoreError.corrupt: nil
    // It may look like one of a later version, and without it a directory is no store.
    case StoreError.incompatible where damage.path.hasSuffix("/LARDER"): nil
    default: "refused with \(error)"
    }
  }

  private static func violation(
    ofGoingOnWith opened: DamageSpecimen.Opened, _ disk: SimulatedDisk,
    _ reading: DamageReading, _ specimen: DamageSpecimen
  ) throws -> String? {
    do {
      try opened.cache.save([1], for: "later")
      try opened.store.close()
      let again = try DamageSpecimen.open(disk)
      let second = DamageReading(of: again.cache, keys: specimen.keys)
      let later = try again.cache.value(for: "later")
      try again.store.close()
      if later != [1] { return "a write after the damage is lost" }
      if again.store.recovery != nil { return "the damage is reported twice" }
      return second.values == reading.values ? nil : "another state after opening again"
    } catch {
      return "it cannot go on: \(error)"
    }
  }
}

extension DamageSpecimen {
  /// All keys that were ever there.
  var keys: Set<String> { Set(states.flatMap(\.keys)) }
}

/// Everything that a cache has to say of its keys, one by one and by a scan.
private struct DamageReading {
  /// What was found under each key.
  private(set) var values: DamageSpecimen.State = [:]
  /// The keys that threw.
  private var named: Set<String> = []
  private var scanned: DamageSpecimen.State = [:]
  private var isScanWhole = true
  private var strange: [String] = []

  init(of cache: Cache<String, [UInt8]>, keys: Set<String>) {
    for key in keys {
      do {
        values[key] = try cache.value(for: key)
      } catch {
        named.insert(key)
        if case StoreError.corrupt(DamageSpecimen.cacheName, key, _) = error { continue }
        strange.append("\(key) throws \(error)")
      }
    }
    do {
      let cursor = try cache.entries()
      while let item = try cursor.next() {
        switch item.entry {
        case .success(let entry): scanned[item.key] = entry.value
        case .failure(let error): strange.append("the scan has \(item.key): \(error)")
        }
      }
    } catch {
      isScanWhole = false
      if case StoreError.corrupt(DamageSpecimen.cacheName, "", _) = error { return }
      strange.append("the scan throws \(error)")
    }
  }

  func outcome(in specimen: DamageSpecimen, isReported: Bool) -> DamageOutcome {
    if !named.isEmpty || !isScanWhole { return .named }
    if values == specimen.states[specimen.current] {
      if specimen.shape == .halfRecovered { return isReported ? .earlier : .unsaid }
      return isReported ? .reported : .right
    }
    return isReported ? .earlier : .unsaid
  }

  func violation(in specimen: DamageSpecimen, isReported: Bool) -> String? {
    if let first = strange.first { return first }
    if named.isEmpty, isScanWhole {
      guard scanned == values else { return "the scan has \(scanned.keys), reads \(values.keys)" }
      return specimen.states[...specimen.current].contains(values)
        ? nil : "a state that never was: \(values.keys)"
    }
    let right = specimen.states[specimen.current]
    for (key, value) in scanned where value != right[key] { return "the scan has a wrong \(key)" }
    let readable = right.filter { !named.contains($0.key) }
    guard values == readable else { return "wrong values of \(values.keys)" }
    if isScanWhole, scanned != readable { return "the scan is silent about what it lacks" }
    return nil
  }
}
