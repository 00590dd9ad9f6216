import Foundation

/// What the command line asks for.
struct Arguments {
  static let usage = """
    larder-bench: Larder against LevelDB in C++, in turns within one run.

      --quick          a run of seconds that verifies the results; its times mean little
      --check          end with exit code 1 unless every goal is met
      --rounds N       how many rounds of A B B A (11; 3 with --quick)
      --only NAME      measure this workload alone; may be given more than once
      --coding         measure encoding and decoding alone
      --sweep          measure sweeping alone
      --peers          measure against the stores of others alone
      --large          the same with large values alone
      --growth         measure reading from larger and larger stores alone
      --huge           have 10,000,000 records at most in those, not 5,000,000
      --backup         measure backups under load, and nothing else
      --budget         fill caches that have a budget, and nothing else
      --week           simulate ten days of saves and sweeps, and nothing else
      --output DIR     write the figures into a JSON file there
    """

  private(set) var scale = Scale.full
  private(set) var rounds: Int?
  private(set) var only: Set<String> = []
  private(set) var checks = false
  private(set) var codingOnly = false
  private(set) var sweepOnly = false
  private(set) var peersOnly = false
  private(set) var largeOnly = false
  private(set) var growthOnly = false
  private(set) var isHuge = false
  private(set) var backupsOnly = false
  private(set) var budgetsOnly = false
  private(set) var weekOnly = false
  private(set) var output: URL?

  /// Throws the message for what cannot be understood.
  init(_ words: some Sequence<String>) throws {
    var words = words.makeIterator()
    while let word = words.next() {
      switch word {
      case "--quick": scale = .quick
      case "--check": checks = true
      case "--coding": codingOnly = true
      case "--sweep": sweepOnly = true
      case "--peers": peersOnly = true
      case "--large": largeOnly = true
      case "--growth": growthOnly = true
      case "--huge": isHuge = true
      case "--backup": backupsOnly = true
      case "--budget": budgetsOnly = true
      case "--week": weekOnly = true
      case "--rounds":
        guard let count = Int(words.next() ?? ""), count > 0 else {
          throw Misuse(description: "--rounds takes a number above 0")
        }
        rounds = count
      case "--only", "--output":
        guard let value = words.next() else { throw Misuse(description: "\(word) takes a value") }
        if word == "--only" { only.insert(value) } else { output = URL(filePath: value) }
      default: throw Misuse(description: "'\(word)' is not known\n\n\(Self.usage)")
      }
    }
  }

  func wants(_ contest: Contest) -> Bool { only.isEmpty || only.contains(contest.name) }
}

struct Misuse: Error, CustomStringConvertible {
  let description: String
}
