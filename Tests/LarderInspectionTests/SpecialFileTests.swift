import Foundation
import Larder
import LarderTestSupport
import Testing

/// No command of `kvinspect` waits for a FIFO or reads a device that has the name of a file.
@Suite(.timeLimit(.minutes(30))) struct SpecialFileTests {
  private static let names = [
    "CURRENT", "MANIFEST", ".log", ".ldb", ".segment", "LARDER", "LARDER.lock", "LARDER.damaged",
    "LARDER.statistics",
  ]

  /// A store with a log, a table and a segment.
  private func specimen() throws -> Specimen {
    let specimen = try Specimen(separatedValueBytes: 1)
    try specimen.withEngine { try $0.compact(EngineRange()) }
    return specimen
  }

  private func place(_ name: String, in path: String) throws -> String {
    let found = try SystemFiles().names(in: path).sorted().first {
      name.hasPrefix(".") ? $0.hasSuffix(name) : $0.hasPrefix(name + "-")
    }
    return "\(path)/\(found ?? name)"
  }

  private func commands(_ path: String, _ file: String) -> [[String]] {
    let most = [
      ["info", path], ["verify", path], ["wal", path], ["doctor", path], ["find", path, "fresh"],
      ["repair", path, "--output", "\(path).new"],
    ]
    guard isProof else { return most }
    return most + [
      ["ls", path], ["get", path, "fresh"], ["why", path, "fresh"], ["top", path], ["stats", path],
      ["prefixes", path], ["ttl", path], ["files", path], ["manifest", path], ["table", file],
      ["diff", path, path], ["digest", path], ["watch", path, "--from-start", "--limit", "1"],
      ["backup", path, "\(path).backup"], ["export", path], ["remove", path, "fresh", "--write"],
      ["sweep", path, "--write"], ["compact", path, "--write"],
      ["import", path, "--kind", "leveldb", "--cache", "a", "--dry-run"],
      ["import", path, "--kind", "files", "--cache", "a", "--dry-run"],
    ]
  }

  private func run(
    _ arguments: [String], _ name: String, isShown: Bool
  ) throws {
    let temporary = try TemporaryDirectory()
    let run = try Kvinspect(arguments, temporary: temporary.path)
    let limit = TimeLimit(seconds: 60) { [id = run.process.processIdentifier] in kill(id, SIGKILL) }
    let result = try run.finish()
    limit.lift()
    let text = "\(name), \(arguments[0]): \(result.status) \(result.errors)"
    #expect(run.process.terminationReason == .exit, "\(text)")
    #expect([0, 2, 3, 4, 5, 6, 64].contains(result.status), "\(text)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path) == [])
    if isShown {
      #expect([3, 4, 5, 6].contains(result.status), "\(text)")
      #expect(!(result.output + result.errors).isEmpty, "\(text)")
    }
  }

  @Test("Commands end when a file of the store is a FIFO.", arguments: names)
  func fifo(name: String) throws {
    let specimen = try specimen()
    let place = try place(name, in: specimen.path)
    let fifo = FIFO(inPlaceOf: place)
    defer { fifo.remove() }
    for command in commands(specimen.path, place) {
      try run(
        command, name, isShown: command[0] == "verify" && !name.hasPrefix("LARDER."))
    }
    #expect(!fifo.wasAwaited)
  }

  @Test("Commands end when a file of the store is a link to a device without an end.")
  func device() throws {
    for name in ["LARDER", ".log", ".segment"] {
      let specimen = try specimen()
      let place = try place(name, in: specimen.path)
      unlink(place)
      symlink("/dev/zero", place)
      for command in commands(specimen.path, place) {
        try run(command, name, isShown: command[0] == "verify")
      }
    }
  }
}
