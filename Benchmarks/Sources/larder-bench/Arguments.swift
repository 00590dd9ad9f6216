import Foundation

/// What the command line asks for.
struct Arguments {
  static let usage = """
    larder-bench: Larder against LevelDB in C++ and others, in turns within one run.

      --quick          a run of seconds that verifies the results; its times mean little
      --check          end with exit code 1 if a goal is not met
      --rounds N       how many rounds of A B B A (11; 3 with --quick)
      --suite NAME     measure this suite alone: \(Suite.all.map(\.name).joined(separator: ", "))
      --only NAME      measure this workload alone; this and --suite may be given more than once
      --huge           read from 10,000,000 records at most in growth, not 5,000,000
      --backup         measure backups under load, and nothing else
      --budget         fill caches that have a budget, and nothing else
      --week           simulate ten days of saves and sweeps, and nothing else
      --output DIR     write the figures into a JSON file there, and plots of them beside it
      --plot FILE      measure nothing, and draw the plots of such a file into --output
      --compare A B    compare two builds of larder-bench: how long B takes, to A
      --serve          be one of the two: run what standard input says, and print its nanoseconds
    """

  /// What is to be done.
  enum Mode {
    case contests
    case backups
    case budgets
    case week
    case plot(URL)
    case compare(base: URL, new: URL)
    case serve
  }

  private(set) var mode = Mode.contests
  private(set) var scale = BenchScale.full
  private(set) var rounds: Int?
  private(set) var checks = false
  private(set) var output: URL?
  private var only: Set<String> = []
  private var suites: Set<String> = []

  /// Throws the message for what cannot be understood.
  init(_ words: some Sequence<String>) throws {
    var words = words.makeIterator()
    while let word = words.next() {
      func value() throws -> String {
        guard let value = words.next() else { throw Misuse(description: "\(word) takes a value") }
        return value
      }
      switch word {
      case "--quick": scale = .quick
      case "--check": checks = true
      case "--huge": scale.grown.append(10_000_000)
      case "--backup": mode = .backups
      case "--budget": mode = .budgets
      case "--week": mode = .week
      case "--serve": mode = .serve
      case "--plot": mode = .plot(URL(filePath: try value()))
      case "--compare":
        mode = .compare(base: URL(filePath: try value()), new: URL(filePath: try value()))
      case "--rounds":
        guard let count = Int(try value()), count > 0 else {
          throw Misuse(description: "--rounds takes a number above 0")
        }
        rounds = count
      case "--only": only.insert(try value())
      case "--suite":
        let name = try value()
        guard Suite.all.contains(where: { $0.name == name }) else {
          throw Misuse(description: "there is no suite '\(name)'\n\n\(Self.usage)")
        }
        suites.insert(name)
      case "--output": output = URL(filePath: try value())
      default: throw Misuse(description: "'\(word)' is not known\n\n\(Self.usage)")
      }
    }
  }

  /// The suites to be measured.
  var wantedSuites: [Suite] { Suite.all.filter { suites.isEmpty || suites.contains($0.name) } }

  /// Whether no workload is left out.
  var wantsAll: Bool { only.isEmpty && suites.isEmpty }

  func wants(_ contest: Contest) -> Bool { only.isEmpty || only.contains(contest.name) }

  /// The same wishes for a process that serves.
  var forServing: [String] {
    let mode = ["--serve"] + (scale.hasGoals ? [] : ["--quick"])
    return mode + only.sorted().flatMap { ["--only", $0] }
      + suites.sorted().flatMap { ["--suite", $0] }
  }
}

struct Misuse: Error, CustomStringConvertible {
  let description: String
}
