import LarderTestSupport
import SimulatedDisk

@testable import Larder

/// A kind of damage to a byte of a file, or to the whole file.
enum DamageKind: CaseIterable, Sendable {
  case flippedBit, inverted, zeroed, zeroedToTheEnd, cut, missing
}

/// One change of one file.
struct ByteDamage: Sendable, CustomStringConvertible {
  let path: String
  let offset: Int
  let kind: DamageKind

  var description: String { "\(path) \(kind) at \(offset)" }

  /// Damages the file; returns false if that changes nothing.
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

  /// The damages of the files that the shape of a specimen is meant to test.
  ///
  /// In the proof each byte is damaged in each way, otherwise in one or two, in turn.
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
        DamageKind.allCases.filter { $0 != .missing }.enumerated().compactMap { number, kind in
          isProof || (offset + number) % 4 == 0
            ? ByteDamage(path: path, offset: offset, kind: kind) : nil
        }
      }
      return bytes + [ByteDamage(path: path, offset: 0, kind: .missing)]
    }
  }
}

/// The outcomes of opening and reading a damaged store.
enum DamageOutcome: String, CaseIterable, Sendable {
  /// Everything is right.
  case right
  /// Opening the store, or its cache, throws.
  case refused
  /// Some keys throw, each its own error; all other reads and all scans return the right values.
  case named
  /// The exact state after an earlier commit, and `recovery` reports a loss.
  case earlier
  /// Everything is right, although `recovery` reports a loss.
  case reported
  /// The exact state after an earlier commit, without a report.
  case unsaid
}

/// The kinds of files, and the outcomes that damage to one of them may have.
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

  /// The table: an outcome that is not in it is a broken promise.
  ///
  /// Three kinds of damage look like a normal state, and are not reported as damage:
  ///
  /// - a last log that ends between two records looks as if the later ones were never written;
  /// - a last log that is missing while an older one is still needed is not in the `MANIFEST` yet:
  ///   LevelDB records a new log there only when the older one has become a table;
  /// - damage in the last record of an older log looks like a power loss, and is handled like one,
  ///   although later logs show that the system continued: they are set aside, too.
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
    // A clean close ends the last log with the notes of what expires.
    case (.lastLog, .reported): reachesTheEnd(damage, in: specimen)
    case (.lastLog, .right): mayBeUnsaid(damage, in: specimen)
    case (.lastLog, .unsaid), (.olderLog, .unsaid): mayBeUnsaid(damage, in: specimen)
    default: false
    }
  }

  /// Whether no intact record follows the damage.
  private func reachesTheEnd(_ damage: ByteDamage, in specimen: DamageSpecimen) -> Bool {
    switch damage.kind {
    case .cut, .zeroedToTheEnd, .missing: true
    default: damage.offset >= specimen.lastRecords[damage.path] ?? 0
    }
  }

  private func mayBeUnsaid(_ damage: ByteDamage, in specimen: DamageSpecimen) -> Bool {
    switch damage.kind {
    case .cut:
      // After an interrupted recovery the last log is empty, and the older one counts as the last.
      (self == .lastLog || specimen.shape == .halfRecovered)
        && specimen.edges[damage.path]?.contains(damage.offset) == true
    case .missing: self == .lastLog && specimen.shape == .twoLogs
    default: false
    }
  }
}

/// The outcome of damage to a store, after reading all of it.
struct DamageFinding {
  let outcome: DamageOutcome
  /// A broken promise; nil if there is none.
  var violation: String?

  /// Damages a copy of the store, and opens and reads it; nil if the damage changes nothing.
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
    // The remaining store must keep working; one check in eight is enough to show it.
    if violation == nil, (damage.offset + damage.path.utf8.count) % 8 == 0 {
      violation = try Self.violation(afterContinuingWith: opened, disk, reading, specimen)
    } else {
      try opened.store.close()
    }
  }

  private static func violation(
    ofRefusal error: any Error, of damage: ByteDamage, in specimen: DamageSpecimen
  ) -> String? {
    switch error {
    case StoreError.corrupt: nil
    // A damaged marker may look like one of a later version; without one there is no store.
    case StoreError.incompatible where damage.path.hasSuffix("/LARDER"): nil
    default: "refused with \(error)"
    }
  }

  private static func violation(
    afterContinuingWith opened: DamageSpecimen.Opened, _ disk: SimulatedDisk,
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
  /// All keys that were ever saved.
  var keys: Set<String> { Set(states.flatMap(\.keys)) }
}

/// The results of reading each key of a cache, and of a scan.
private struct DamageReading {
  /// The values read, by key.
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
    let (forwards, backwards) = (scan(cache, .ascending), scan(cache, .descending))
    if forwards.map(\.key) != backwards.map(\.key).reversed() {
      strange.append("the scans visit other keys: \(forwards), backwards \(backwards)")
    }
    if forwards.map(\.value) != backwards.map(\.value).reversed() {
      strange.append("the scans have other values of \(forwards.map(\.key))")
    }
    for (key, value) in forwards { scanned[key] = value }
  }

  private mutating func scan(
    _ cache: Cache<String, [UInt8]>, _ order: ScanOrder
  ) -> [(key: String, value: [UInt8])] {
    var items: [(key: String, value: [UInt8])] = []
    var isWhole = true
    do {
      let cursor = try cache.entries(order: order)
      while let item = try cursor.next() {
        switch item.entry {
        case .success(let entry): items.append((item.key, entry.value))
        case .failure(let error): strange.append("the scan has \(item.key): \(error)")
        }
      }
    } catch {
      isWhole = false
      if case StoreError.corrupt(DamageSpecimen.cacheName, "", _) = error {
        // Damage is reported once, after everything readable.
      } else {
        strange.append("the scan throws \(error)")
      }
    }
    if order == .descending, isWhole != isScanWhole {
      strange.append("only one of the scans reports damage")
    }
    isScanWhole = isWhole
    return items
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
