import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

@testable import LarderInspection

/// `kvinspect DIRECTORY` says what is in a store, and unknown words are answered with help.
@Suite struct SummaryTests {
  private func run(
    _ arguments: String...
  ) throws -> (status: Int32, output: String, errors: String) {
    let temporary = try TemporaryDirectory()
    let result = try Kvinspect(arguments, temporary: temporary.path).finish()
    return (result.status, result.output, result.errors)
  }

  @Test("A store without a command gets its summary, by any spelling of its path.")
  func summary() throws {
    let specimen = try Specimen()
    let named = try run("summary", specimen.path, "--now", "2026-01-01")
    #expect(named.status == 0)
    #expect(named.output.contains("kvinspect sweep \(specimen.path) --write"))
    #expect(named.output.contains("kvinspect ls \(specimen.path)"))
    #expect(try run(specimen.path, "--now", "2026-01-01") == named)
    #expect(try run(specimen.path + "/.", "--now", "2026-01-01") == named)
    // Records by state, for programs.
    let rows = try run(specimen.path, "--now", "2026-01-01", "--format", "csv").output
    #expect(
      rows.split(separator: "\n").contains {
        $0.hasPrefix("genres,5,") && $0.contains(",3,1,1,0,")
      },
      "\(rows)")
  }

  @Test("A damaged store's summary begins with what is to be done.")
  func damaged() throws {
    let specimen = try Specimen.withFaults()
    let result = try run(specimen.path)
    #expect(result.status == 3)
    #expect(result.output.contains("kvinspect verify \(specimen.path)"))
    #expect(try run("/dev/null").status == 6 || run("/dev/null").status == 4)
  }

  @Test(
    "An unknown word is answered with the command that was meant.",
    arguments: [
      ("rm", "did you mean 'remove'?"), ("verfy", "did you mean 'verify'?"),
      ("nonsense", "see 'kvinspect help'"), ("expires", "did you mean 'ttl'?"),
    ])
  func unknown(word: String, answer: String) throws {
    let result = try run(word)
    #expect(result.status == 64 && result.output.isEmpty)
    #expect(result.errors.contains(answer) && result.errors.contains("'\(word)'"))
  }

  @Test("All commands are in groups of the help.")
  func help() throws {
    let help = try run("--help").output
    for group in ["QUESTIONS", "HEALTH", "CHANGES", "LEVELDB"] {
      #expect(help.contains(group), "\(help)")
    }
    for command in ["summary", "invalidate", "metrics", "compact", "wal"] {
      #expect(help.contains("  \(command)"))
    }
  }

  @Test("Equal stores are said to be equal, and a sweep says its bytes.")
  func words() throws {
    let specimen = try Specimen()
    #expect(try run("diff", specimen.path, specimen.path).output.hasSuffix("are equal.\n"))
    let dry = try run("sweep", specimen.path, "--dry-run", "--now", "2026-06-01").output
    #expect(dry.contains(" B with their keys"), "\(dry)")
    let swept = try run("sweep", specimen.path, "--write", "--now", "2026-06-01").output
    #expect(swept == dry.replacing("would be deleted", with: "deleted"))
    let next = try run("top", specimen.path, "--by", "expires", "--now", "2026-01-01")
    #expect(try next == run("top", specimen.path, "--by", "ttl", "--now", "2026-01-01"))
  }

  @Test("`get` shows the start of a large payload, and all of it if that is asked for.")
  func largePayload() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    let cache = try store.cache("images", of: Data.self, coder: .bytes)
    try cache.save(Data(repeating: 0xFE, count: 400_000), for: "a")
    try store.close()
    let start = try run("get", specimen.path, "a").output
    #expect(start.contains("... and 397,952 bytes more: --values hex shows all, --raw writes them"))
    #expect(start.split(separator: "\n").count < 150)
    let whole = try run("get", specimen.path, "a", "--values", "hex").output
    #expect(whole.split(separator: "\n").count > 25_000 && !whole.contains("bytes more"))
    let json = try run("get", specimen.path, "a", "--format", "json").output
    #expect(json.utf8.count > 800_000)
  }

  @Test("`ls --tag` lists the records with a tag, and `invalidate` ends them.")
  func tags() throws {
    let specimen = try Specimen(separatedValueBytes: 1)
    let store = try Specimen.open(specimen.path)
    let cache = try store.cache("tagged", of: Int.self, lifetime: .unlimited)
    for number in 0..<5 {
      try cache.save(number, for: "k\(number)", tags: number < 3 ? ["x", "y"] : ["y"])
      if number == 4 { try cache.save(number, for: "k4", tags: ["y", "\u{E9}"]) }
    }
    try store.close()
    func keys(_ tag: String) throws -> [String] {
      try run("ls", specimen.path, "--tag", tag, "--format", "csv").output
        .split(separator: "\n").dropFirst().map { String($0.split(separator: ",")[1]) }
    }
    #expect(try keys("x") == ["k0", "k1", "k2"])
    #expect(try keys("y").count == 5)
    #expect(try keys("z") == [])
    // A tag in another spelling of the same text is the same tag.
    #expect(try keys("\u{E9}") == ["k4"] && keys("e\u{301}") == ["k4"])
    #expect(
      try run("invalidate", specimen.path, "e\u{301}", "--dry-run", "--quiet").output == "1\n")
    #expect(try run("invalidate", specimen.path, "x").status == 64)
    let dry = try run("invalidate", specimen.path, "x", "--dry-run")
    #expect(dry.status == 0 && dry.output.contains("3 records would be ended"))
    #expect(try run("invalidate", specimen.path, "x", "--write").output.contains("3 records ended"))
    #expect(
      try run("invalidate", specimen.path, "x", "--dry-run").output.contains("0 records"))
    #expect(try run("why", specimen.path, "k0").output.contains("invalidated"))
    #expect(try run("invalidate", specimen.path, "", "--write").status == 64)
    let again = try Specimen.open(specimen.path)
    let values = try again.cache("tagged", of: Int.self, lifetime: .unlimited)
      .values(for: ["k0", "k2", "k3"])
    #expect(values == [nil, nil, 3])
    try again.close()
  }

  @Test("`doctor` names a cache that holds more than its budget.")
  func budgets() throws {
    let specimen = try Specimen()
    for budget in [1 << 20, 1000] {
      let store = try Specimen.open(specimen.path)
      let cache = try store.cache("small", of: Data.self, byteBudget: budget)
      if budget > 1000 { try cache.save(Data(count: 5000), for: "a") }
      try store.close()
    }
    let result = try run("doctor", specimen.path)
    #expect(result.status == 0)
    #expect(result.output.contains("Cache small holds 5.0 KB, more than its budget of 1.0 KB."))
  }
}
