import Foundation

/// The parsed command line.
struct Arguments {
  static let usage = """
    larder-bench: compares Larder with LevelDB in C++ and other stores, alternating within one run.

      --quick          run for seconds, to verify the results; the times mean little
      --check          exit with code 1 if a goal is missed
      --rounds N       the number of rounds of A B B A (11; 3 with --quick)
      --suite NAME     measure only this suite: \(Suite.all.map(\.name).joined(separator: ", "))
      --only NAME      measure only this workload; --suite and --only may be repeated
      --huge           in the suites sizes and expiry, also 10,000,000 records
      --background     only measure saves beside a backup, a sweep and a collection
      --budget         only fill caches that have a byte budget
      --week           only simulate ten days of saves and sweeps
      --large          only write and read values from 1 KB to 1 MB; --only NAME selects stores
      --hit-ratio      only play the keys of standard input, one a line, through a cache of
                       --capacity N objects, and print the hits in per cent on the last line; a
                       key is any bytes, and a carriage return is part of it
      --budget-hits    only play them through a cache on disk with a byte budget for --capacity N
                       equal entries; a key that is not found is saved
      --step SECONDS   with --budget-hits, the time from one key to the next (0)
      --policy NAME    the cache's policy: \(HitRatio.Policy.names) (larder)
      --output DIR     write the results to a JSON file in DIR, with plots
      --plot FILE      only draw the plots of a results file, into the directory of --output; a
                       file .txt is a table of hit ratios by Scripts/hit-ratios
      --compare A B    compare two builds of larder-bench: the time of B divided by that of A
      --serve          used by --compare: run the workloads requested on standard input
    """

  /// The task of this run.
  enum Mode {
    case contests
    case background
    case budgets
    case week
    case large
    case hitRatio(HitRatio)
    case budgetHits(BudgetHits)
    case plot(URL)
    case compare(base: URL, new: URL)
    case serve
  }

  private(set) var mode = Mode.contests
  private(set) var scale = BenchScale.full
  private(set) var rounds: Int?
  private(set) var checks = false
  private(set) var output: URL?
  private var playsKeys = false
  private var playsKeysOnDisk = false
  private var step: Double?
  private var capacity: Int?
  private var policy: HitRatio.Policy?
  private var only: Set<String> = []
  private var suites: Set<String> = []

  /// Parses the arguments; throws ``UsageError`` if one is invalid.
  init(_ words: some Sequence<String>) throws {
    var words = words.makeIterator()
    while let word = words.next() {
      func value() throws -> String {
        guard let value = words.next() else {
          throw UsageError(description: "\(word) needs a value")
        }
        return value
      }
      switch word {
      case "--quick": scale = .quick
      case "--check": checks = true
      case "--huge":
        scale.grown.append(10_000_000)
        scale.live.append(10_000_000)
      case "--background": mode = .background
      case "--budget": mode = .budgets
      case "--week": mode = .week
      case "--large": mode = .large
      case "--hit-ratio": playsKeys = true
      case "--budget-hits": playsKeysOnDisk = true
      case "--step":
        let text = try value()
        guard let seconds = Double(text), (0...86_400).contains(seconds) else {
          throw UsageError(description: "--step takes 0 to 86400 seconds, not '\(text)'")
        }
        step = seconds
      case "--capacity":
        let text = try value()
        guard let count = Int(text), count > 0 else {
          throw UsageError(
            description: "--capacity takes a number of objects above 0, not '\(text)'")
        }
        capacity = count
      case "--policy":
        let name = try value()
        guard let known = HitRatio.Policy(rawValue: name) else {
          throw UsageError(
            description: "--policy takes \(HitRatio.Policy.names), not '\(name)'")
        }
        policy = known
      case "--serve": mode = .serve
      case "--plot": mode = .plot(URL(filePath: try value()))
      case "--compare":
        mode = .compare(base: URL(filePath: try value()), new: URL(filePath: try value()))
      case "--rounds":
        guard let count = Int(try value()), count > 0 else {
          throw UsageError(description: "--rounds takes a number above 0")
        }
        rounds = count
      case "--only": only.insert(try value())
      case "--suite":
        let name = try value()
        guard Suite.all.contains(where: { $0.name == name }) else {
          if name == "shared" {
            throw UsageError(description: "this build has no suite shared; use make bench-shared")
          }
          throw UsageError(description: "unknown suite '\(name)'\n\n\(Self.usage)")
        }
        suites.insert(name)
      case "--output": output = URL(filePath: try value())
      default: throw UsageError(description: "unknown option '\(word)'\n\n\(Self.usage)")
      }
    }
    try choosePlay()
  }

  /// Chooses the cache for `--hit-ratio` or `--budget-hits`.
  private mutating func choosePlay() throws {
    let option = playsKeysOnDisk ? "--budget-hits" : "--hit-ratio"
    if policy != nil, !playsKeys { throw UsageError(description: "--policy needs --hit-ratio") }
    if step != nil, !playsKeysOnDisk { throw UsageError(description: "--step needs --budget-hits") }
    guard playsKeys || playsKeysOnDisk else {
      guard capacity == nil else {
        throw UsageError(description: "--capacity needs --hit-ratio or --budget-hits")
      }
      return
    }
    guard playsKeys != playsKeysOnDisk else {
      throw UsageError(description: "--hit-ratio and --budget-hits exclude each other")
    }
    guard let capacity else {
      throw UsageError(description: "\(option) needs --capacity N, a number of objects above 0")
    }
    mode =
      playsKeys
      ? .hitRatio(HitRatio(policy: policy ?? .larder, capacity: capacity))
      : .budgetHits(BudgetHits(capacity: capacity, step: step ?? 0))
  }

  /// The selected suites.
  var selectedSuites: [Suite] { Suite.all.filter { suites.isEmpty || suites.contains($0.name) } }

  /// Whether all workloads are selected.
  var selectsAll: Bool { only.isEmpty && suites.isEmpty }

  func selects(_ name: String) -> Bool { only.isEmpty || only.contains(name) }

  /// The arguments for a process with `--serve` that selects the same workloads.
  var servingArguments: [String] {
    let mode = ["--serve"] + (scale.hasGoals ? [] : ["--quick"])
    return mode + only.sorted().flatMap { ["--only", $0] }
      + suites.sorted().flatMap { ["--suite", $0] }
  }
}

/// An invalid command line, or a failed comparison of two builds.
struct UsageError: Error, CustomStringConvertible {
  let description: String
}
