import Foundation
import Larder
import LarderInspection
import LarderTestSupport
import Testing

/// A limit of the size of files makes commands fail with exit code 5, and they leave nothing.
@Suite(.timeLimit(.minutes(30))) struct FileLimitTests {
  /// A specimen with 1 MB more of values, small ones and some that are in segments.
  private func specimen() throws -> Specimen {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path, separatedValueBytes: 16 << 10)
    let cache = try store.cache("bytes", of: [UInt8].self, coder: .bytes)
    var random = SplitMix64(seed: 9)
    for index in 0..<20 { try cache.save(random.bytes(30_000), for: "large \(index)") }
    try store.write { batch in
      for index in 0..<400 { batch.save(random.bytes(1000), for: "small \(index)", in: cache) }
    }
    try store.close()
    return specimen
  }

  @Test(
    "A command that makes a directory leaves none behind.",
    arguments: ["import", "files", "restore", "backup", "repair", "set"])
  func limits(command: String) throws {
    let specimen = try specimen()
    let places = try TemporaryDirectory()
    let temporary = try TemporaryDirectory()
    func run(_ arguments: [String], largestFile: Int? = nil) throws -> (Int32, String) {
      let run = try Kvinspect(arguments, temporary: temporary.path, largestFile: largestFile)
      let result = try run.finish()
      #expect(run.process.terminationReason == .exit, "\(command), \(largestFile ?? 0) blocks")
      return (result.status, result.errors)
    }
    let source = places.path("source")
    if command == "import" {
      let text = try Inspection(at: specimen.path, now: Specimen.now)
      var lines = ""
      #expect(try text.export(Selection(), style: Style(), to: &lines) == .fine)
      try Data(lines.utf8).write(to: URL(filePath: source))
    }
    if command == "restore" { #expect(try run(["backup", specimen.path, source]).0 == 0) }
    let target = places.path("target")
    let arguments =
      switch command {
      case "import": ["import", source, target]
      case "files": ["import", specimen.path, target, "--kind", "files", "--cache", "files"]
      case "restore": ["restore", source, target]
      case "backup": ["backup", specimen.path, target]
      case "repair": ["repair", specimen.path, "--output", target]
      default: ["set", specimen.path, "fresh", "--value", "{}", "--write", "--force"]
      }
    let before = try FileManager.default.contentsOfDirectory(atPath: places.path)
    for blocks in [0, 1, 8, 64, 256] {
      let (status, errors) = try run(arguments, largestFile: blocks)
      let text = "\(command), \(blocks) blocks: \(status) \(errors)"
      #expect(status == 5, "\(text)")
      #expect(errors.hasPrefix("kvinspect: "), "\(text)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: places.path) == before, "\(text)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path) == [], "\(text)")
    }
    #expect(try run(arguments).0 == 0)
    #expect(try run(["verify", command == "set" ? specimen.path : target]).0 == 0)
  }
}
