import AcceptanceRows
import Foundation
import LarderTestSupport
import SimulatedDisk
import Synchronization
import Testing

@testable import Larder

/// Damage to a payload costs its entry.
///
/// What was durable stays, and what was removed stays away.
@Suite(.acceptance) struct SegmentLossTests {
  /// A change of a byte, or a cut before it.
  private struct Damage: CustomStringConvertible {
    let path: String
    let offset: Int
    let isCut: Bool

    var isOfLog: Bool { path.hasSuffix(".log") }

    var description: String { "\(path) \(isCut ? "cut" : "flipped") at \(offset)" }

    func apply(to disk: SimulatedDisk) {
      disk.edit(path) { bytes in
        if isCut { bytes.removeSubrange(offset...) } else { bytes[offset] ^= 1 << (offset % 8) }
      }
    }
  }

  private struct Tally {
    var cases = 0
    var refused = 0
    /// Openings after which an entry was damaged, and those that lost writes.
    var (withDamaged, withLost) = (0, 0)
    var violations: [String] = []
  }

  /// Damages a copy of the store, opens it and reads it.
  private static func check(_ damage: Damage, in specimen: SegmentLossSpecimen) throws -> Tally {
    var tally = Tally()
    tally.cases = 1
    let disk = specimen.disk.copy()
    damage.apply(to: disk)
    let before = disk.hash
    let opened: SegmentLossSpecimen.Opened
    do {
      opened = try SegmentLossSpecimen.Opened(disk, specimen.shape)
    } catch StoreError.corrupt {
      tally.refused = 1
      if !mayBeRefused(damage, in: specimen) || disk.hash != before {
        tally.violations = ["\(specimen.shape), \(damage): refused"]
      }
      return tally
    }
    let (values, damaged) = try opened.read(specimen.keys)
    let allowed = allowedStates(after: damage, in: specimen)
    let found = allowed.reversed().first { index in
      specimen.keys.allSatisfy { key in
        let right = specimen.states[index][key]
        // An entry that has ended is damaged like another.
        return damaged.contains(key)
          ? right != nil || key == SegmentLossSpecimen.ended : values[key] == right
      }
    }
    var problem: String?
    if found == nil {
      problem = "a state that is not allowed: \(values.keys.sorted()), damaged \(damaged.sorted())"
    } else if !damaged.isEmpty, damage.isOfLog || !damage.isCut && damaged.count > 1 {
      problem = "too much is damaged: \(damaged.sorted())"
    } else if found != specimen.current, opened.store.recovery == nil,
      !(damage.isCut && damage.isOfLog)
    {
      problem = "the loss is not reported"
    }
    if found != specimen.current { tally.withLost = 1 }
    if !damaged.isEmpty { tally.withDamaged = 1 }
    try opened.notes.save([1], for: "later")
    try opened.store.close()
    let again = try SegmentLossSpecimen.Opened(disk, specimen.shape)
    let second = try again.read(specimen.keys.subtracting(damaged))
    if second.values != values || !second.damaged.isEmpty || again.store.recovery != nil {
      problem = problem ?? "another state after opening again"
    }
    if try again.notes.value(for: "later") != [1] { problem = problem ?? "a later write is lost" }
    try again.store.close()
    if let problem { tally.violations = ["\(specimen.shape), \(damage): \(problem)"] }
    return tally
  }

  /// Whether intact records follow the damage in the log.
  private static func mayBeRefused(_ damage: Damage, in specimen: SegmentLossSpecimen) -> Bool {
    damage.isOfLog && !damage.isCut
      && damage.offset < lastRecord(of: damage.path, in: specimen)
  }

  private static func lastRecord(of log: String, in specimen: SegmentLossSpecimen) -> Int {
    var scan = LogScan(specimen.disk.bytes(of: log) ?? [], of: .batches(minimumSequence: 0))
    var start = 0
    while let record = scan.next() { start = record.start }
    return start
  }

  /// The states in which the store may be, by their indices.
  private static func allowedStates(
    after damage: Damage, in specimen: SegmentLossSpecimen
  ) -> ClosedRange<Int> {
    guard damage.isOfLog else {
      switch specimen.shape {
      case .killed, .full: return specimen.durable...specimen.current
      // All payloads were synced.
      case .closed, .reopened: return specimen.current...specimen.current
      }
    }
    // Nothing says that records are missing, so the state is exactly that before them.
    let end = damage.isCut ? damage.offset : lastRecord(of: damage.path, in: specimen)
    let last =
      specimen.edges.lastIndex { $0.log != damage.path || $0.byte <= end } ?? 0
    return last...last
  }

  @Test("Damage to any byte of a segment or a log costs no durable write, or is refused.")
  func everyByte() throws {
    let step = isProof ? 1 : 89
    let state = Mutex(Tally())
    for shape in SegmentLossSpecimen.Shape.allCases {
      let specimen = try SegmentLossSpecimen(shape)
      let damages = specimen.paths.flatMap { path in
        (0..<(specimen.disk.bytes(of: path)?.count ?? 0)).flatMap { offset in
          [false, true].map { Damage(path: path, offset: offset, isCut: $0) }
        }
      }
      let chosen = damages.enumerated().filter { $0.offset % step == 0 }.map(\.element)
      onThreads(2) { thread in
        for (index, damage) in chosen.enumerated() where index % 2 == thread {
          do {
            let one = try Self.check(damage, in: specimen)
            state.withLock { tally in
              tally.cases += one.cases
              tally.refused += one.refused
              tally.withDamaged += one.withDamaged
              tally.withLost += one.withLost
              tally.violations += one.violations
            }
          } catch {
            state.withLock { $0.violations.append("\(shape), \(damage): \(error)") }
          }
        }
      }
    }
    let tally = state.withLock { $0 }
    #expect(tally.violations == [], "\(tally.violations.count) of \(tally.cases)")
    #expect(tally.refused > 0 && tally.withDamaged > 0 && tally.withLost > 0)
    print(
      "segment loss: \(tally.cases) cases, \(tally.refused) refused, \(tally.withDamaged) with a "
        + "damaged entry, \(tally.withLost) with lost writes, \(tally.violations.count) violations")
  }
}
