import LarderTestSupport
import SimulatedDisk
import Synchronization
import Testing

@testable import Larder

/// No damage to any byte of any file makes a read return a wrong value.
///
/// A table says what else may happen to the store: ``DamagedFile/allows(_:of:in:)``.
@Suite struct DamageTableTests {
  @Test("Damage to each byte of each file leads to an outcome that the table allows.")
  func everyByte() throws {
    let tally = DamageTally()
    for shape in DamageSpecimen.Shape.allCases {
      let specimen = try DamageSpecimen(shape)
      try expectUndamaged(specimen)
      let damages = ByteDamage.all(in: specimen)
      onThreads(2) { thread in
        for damage in damages where damage.offset % 2 == thread {
          tally.look(at: damage, in: specimen)
        }
      }
    }
    let total = tally.state.withLock { $0 }
    #expect(total.violations.isEmpty, "\(total.violations.prefix(10).joined(separator: "\n"))")
    // Each kind of file was damaged, and each outcome met.
    #expect(Set(total.counts.keys) == Set(DamagedFile.allCases))
    let outcomes = Set(total.counts.values.flatMap(\.keys))
    #expect(outcomes == Set(DamageOutcome.allCases))
    print(total.summary)
  }

  private func expectUndamaged(_ specimen: DamageSpecimen) throws {
    let (store, cache) = try DamageSpecimen.open(specimen.disk.copy())
    for key in specimen.keys {
      #expect(try cache.value(for: key) == specimen.states[specimen.current][key])
    }
    #expect((store.recovery != nil) == (specimen.shape == .halfRecovered))
    try store.close()
  }
}

/// The findings of all threads.
private final class DamageTally: Sendable {
  struct Total {
    var counts: [DamagedFile: [DamageOutcome: Int]] = [:]
    var violations: [String] = []

    var summary: String {
      let files = DamagedFile.allCases.map { file in
        let words = DamageOutcome.allCases.compactMap { outcome in
          counts[file]?[outcome].map { "\($0) \(outcome)" }
        }
        return "\(file) " + words.joined(separator: ", ")
      }
      let cases = counts.values.reduce(0) { $0 + $1.values.reduce(0, +) }
      return "damage: \(cases) cases, \(violations.count) violations: "
        + files.joined(separator: "; ")
    }
  }

  let state = Mutex(Total())

  func look(at damage: ByteDamage, in specimen: DamageSpecimen) {
    let file = DamagedFile(damage.path, in: specimen)
    do {
      guard let finding = try DamageFinding(of: damage, in: specimen) else { return }
      state.withLock { total in
        total.counts[file, default: [:]][finding.outcome, default: 0] += 1
        if let violation = finding.violation {
          total.violations.append("\(specimen.shape), \(damage): \(violation)")
        } else if !file.allows(finding.outcome, of: damage, in: specimen) {
          total.violations.append("\(specimen.shape), \(damage): \(finding.outcome)")
        }
      }
    } catch {
      state.withLock { $0.violations.append("\(damage): \(error)") }
    }
  }
}
