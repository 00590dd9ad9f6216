import Foundation
import Larder
import LarderTestSupport
import Testing

@testable import LarderInspection

/// `kvinspect` exits with documented codes, writes to the right stream and leaves no files.
@Suite struct ExecutableTests {
  private func run(
    _ arguments: String...
  ) throws -> (status: Int32, bytes: Data, output: String, errors: String) {
    try run(arguments)
  }

  private func run(
    _ arguments: [String]
  ) throws -> (status: Int32, bytes: Data, output: String, errors: String) {
    let temporary = try TemporaryDirectory()
    let result = try Kvinspect(arguments, temporary: temporary.path).finish()
    #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path) == [])
    return result
  }

  @Test("The program writes completions for each shell, and its version.")
  func completions() throws {
    for shell in ["bash", "zsh", "fish"] {
      let result = try run("--generate-completion-script", shell)
      #expect(result.status == 0)
      for command in ["why", "export", "compact"] { #expect(result.output.contains(command)) }
    }
    #expect(try run("--version").output.contains("format 2"))
  }

  @Test("The exit code depends on what was found.")
  func exitCodes() throws {
    let specimen = try Specimen.withFaults()
    let path = specimen.path

    #expect(try run("info", path).status == 0)
    #expect(try run("ls", path, "--cache", "lists").status == 0)
    #expect(try run("get", path, "expired").status == 0)
    #expect(try run("get", path, "nobody").status == 2)
    #expect(try run("ls", path).status == 3)
    #expect(try run("get", path, "damaged").status == 3)
    #expect(try run("get", path, "damaged", "--raw").status == 3)
    #expect(try run("info", path + "/none").status == 4)
    #expect(try run("get", path, "0x74776f0a6c696e6573").status == 6)
    #expect(try run("get", path, "fresh", "--format", "csv").status == 64)
    #expect(try run("ls", path, "--limit", "-1").status == 64)
    #expect(try run("ls", path, "--now", "soon").status == 64)
    #expect(try run("ttl", path, "--cache", "lists").status == 0)
    #expect(try run("ttl", path).status == 3)
    #expect(try run("nonsense").status == 64)
    #expect(try run("top", path, "--by", "ttl", "--limit", "3").status == 0)
    #expect(try run("top", path, "--limit", "30").status == 3)
    #expect(try run("top", path, "--by", "key").status == 64)
    #expect(try run("ls", path, "--state", "lost").status == 64)
    #expect(try run("ls", path, "--sort", "size", "--cache", "lists").status == 0)
    #expect(try run("stats", path, "--cache", "lists").status == 0)
    #expect(try run("prefixes", path, "--cache", "lists", "--delimiter", "-").status == 0)
    #expect(try run("prefixes", path, "--depth", "0").status == 64)
    #expect(try run("why", path, "fresh").status == 0)
    #expect(try run("why", path, "-7").status == 0)
    #expect(try run("why", path, "absent").status == 2)
    #expect(try run("watch", path, "--from-start", "--limit", "1").status == 0)
    #expect(try run("doctor", path).status == 3)
    #expect(try run("doctor", path, "--deep", "--format", "json").status == 3)
    #expect(try run("doctor", path + "/none").status == 4)
    #expect(try run("watch", path, "--limit", "0").status == 64)
    #expect(try run("watch", path, "--interval", "1").status == 64)
    #expect(try run("watch", path, "--format", "json").status == 64)
    #expect(try run("watch", path, "--statistics").status == 4)
    #expect(try run("watch", path, "--statistics", "--all").status == 64)
    #expect(try run("watch", path + "/none").status == 4)
    #expect(try run("why", path, "--fast", "fresh").status == 64)
  }

  @Test("The files of a store are listed and searched, and exit codes say what was found.")
  func files() throws {
    let specimen = try Specimen()
    let path = specimen.path
    #expect(try run("files", path).output.contains("MANIFEST-"))
    #expect(try run("files", path + "/none").status == 4)
    #expect(try run("wal", path, "--entries", "--format", "csv").output.contains(",put,"))
    #expect(try run("manifest", path).output.contains("leveldb.BytewiseComparator"))
    #expect(try run("table", path).status == 64)
    #expect(try run("table", path + "/CURRENT").status == 3)
    #expect(try run("find", path, "-7").output.contains("current"))
    #expect(try run("find", path, "nobody").status == 2)
    #expect(try run("find", path, "--database-key", "0x10016e").status == 2)
    #expect(try run("find", path, "--fast", "fresh").status == 64)
  }

  @Test("Copies of a store are made, compared and compacted.")
  func copies() throws {
    let specimen = try Specimen()
    let places = try TemporaryDirectory()
    let (path, backup, copy) = (specimen.path, places.path("backup"), places.path("copy"))
    #expect(try run("backup", path, backup).status == 0)
    #expect(try run("backup", path, backup).status == 64)
    #expect(try run("restore", backup, copy).status == 0)
    #expect(try run("restore", path, places.path("other")).status == 6)
    #expect(try run("diff", path, copy).status == 0)
    #expect(try run("diff", backup, copy, "--cache", "lists").status == 0)
    let digest = try run("digest", "--quiet", path)
    #expect(digest.status == 0 && digest.output.count == 33)
    #expect(try run("digest", "--quiet", copy).output == digest.output)
    #expect(try run("diff", path, copy, "--cache", "none").status == 2)
    #expect(try run("repair", path, "--output", places.path("new")).status == 0)
    #expect(try run("repair", path).status == 64)
    #expect(try run("compact", copy).status == 64)
    #expect(try run("compact", copy, "--write").status == 0)
    #expect(try run("sweep", copy, "--write", "--now", "+9d").status == 0)
    let different = try run("diff", path, copy)
    #expect(different.status == 1 && different.errors == "")
    #expect(different.output.contains("only in the first  lists   42\n"), "\(different.output)")
  }

  @Test("`bench` measures and leaves no files.")
  func bench() throws {
    let specimen = try Specimen()
    let quick = ["bench", "--rounds", "1", "--quiet"]

    let machine = try run(quick + ["--records", "100", "--format", "jsonl"])
    #expect(machine.status == 0 && machine.errors.isEmpty)
    #expect(machine.output.split(separator: "\n").count == 9)
    let store = try run(quick + ["--store", specimen.path])
    #expect(store.status == 0 && store.output.contains("genres"))
    #expect(try run(quick + ["--store", specimen.path + "/none"]).status == 4)
    #expect(try run(quick + ["--store", specimen.path, "--records", "100"]).status == 64)
    #expect(try run(["bench", "--rounds", "0"]).status == 64)
    #expect(try run(["bench", "--records", "-1"]).status == 64)
    #expect(try run(quick + ["--records", "100", "--format", "csv"]).status == 64)
  }

  @Test("`sweep` deletes records only with `--write`.")
  func sweep() throws {
    let specimen = try Specimen()
    func sweeping(_ flags: String...) throws -> (
      status: Int32, bytes: Data, output: String, errors: String
    ) {
      let temporary = try TemporaryDirectory()
      return try Kvinspect(
        ["sweep", specimen.path, "--now", "2027-01-01"] + flags, temporary: temporary.path
      ).finish()
    }
    let refused = try sweeping()
    #expect(refused.status == 64 && refused.output.isEmpty)
    #expect(refused.errors.contains("--write"))
    #expect(try sweeping("--write", "--dry-run").status == 64)
    #expect(try sweeping("--live").errors.contains("clock"))
    for _ in 0..<2 {
      let dry = try sweeping("--dry-run", "--quiet")
      #expect(dry.status == 0 && dry.output == "9\n")
    }
    let swept = try sweeping("--write", "--quiet")
    #expect(swept.status == 0 && swept.output == "9\n")
    #expect(try sweeping("--write", "--quiet").output == "0\n")
    #expect(try run("sweep", specimen.path + "/none", "--write").status == 4)
  }

  @Test("Data goes to standard output and messages to standard error.")
  func streams() throws {
    let specimen = try Specimen()

    let fine = try run("get", specimen.path, "0x00ff", "--raw")
    #expect(fine.output == "xyzzy as text" && fine.errors.contains("is expired"))
    let missing = try run("get", specimen.path, "nobody")
    #expect(missing.output.isEmpty && missing.errors == "kvinspect: nobody is missing\n")
    #expect(try run("get", specimen.path, "nobody", "--quiet").errors.isEmpty)
  }

  @Test("Keys that look like options can be passed as arguments.")
  func optionLikeKeys() throws {
    let specimen = try Specimen()

    #expect(try run("get", specimen.path, "-7").status == 0)
    #expect(try run("ls", specimen.path, "--cache", "lists", "--from", "-7").status == 0)
    #expect(try run("ls", specimen.path, "--now", "-1d").status == 0)
  }

  @Test("A key that begins with a dash is passed after `--`, to all commands that take keys.")
  func keysAfterTerminator() throws {
    let specimen = try Specimen()
    let path = specimen.path
    let store = try Specimen.open(path)
    let cache = try store.cache("dashes", of: String.self, coder: .json)
    for key in ["-k", "--write", "--", "--help"] {
      try cache.save("value of \(key)", for: key)
    }
    try store.close()
    for key in ["-k", "--write", "--", "--help"] {
      let value = "value of \(key)"
      #expect(try run("get", path, "--", key).output.contains(value), "\(key)")
      #expect(try run("get", "--", path, key).output.contains(value), "\(key)")
      #expect(
        try run("get", "--cache", "dashes", path, "--raw", "--", key).output == "\"\(value)\"",
        "\(key)")
      #expect(try run("why", path, "--", key).status == 0, "\(key)")
      #expect(try run("find", path, "--", key).status == 0, "\(key)")
      #expect(
        try run("set", path, "--value", "\"new\"", "--write", "--quiet", "--", key).status == 0)
      #expect(try run("get", path, "--raw", "--", key).output == "\"new\"", "\(key)")
      #expect(try run("remove", path, "--write", "--", key).status == 0, "\(key)")
      #expect(try run("get", path, "--", key).status == 2, "\(key)")
    }
    #expect(try run("get", path, "--", "-7").status == 0)
    #expect(try run("get", path, "fresh", "--").status == 0)
    #expect(try run("get", path, "-k").status == 64)
    #expect(try run("get", path, "-k", "--", "fresh").status == 64)
    #expect(try run("get", path, "--", "fresh", "stale").status == 64)
    #expect(try run("get", path, "--").status == 64)
  }

  @Test("A reader that closes the output ends the program without an error.")
  func closedOutput() throws {
    let specimen = try largeStore()
    let temporary = try TemporaryDirectory()
    let run = try Kvinspect(["ls", specimen.path, "--format", "jsonl"], temporary: temporary.path)

    #expect(try run.output.fileHandleForReading.read(upToCount: 10)?.count == 10)
    try run.output.fileHandleForReading.close()
    run.process.waitUntilExit()

    #expect(run.process.terminationStatus == 0)
    #expect(try run.errors.fileHandleForReading.readToEnd() ?? Data() == Data())
    #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path) == [])
  }

  @Test("A signal removes the snapshot.", arguments: [SIGINT, SIGTERM])
  func signals(number: Int32) throws {
    let specimen = try largeStore()
    let temporary = try TemporaryDirectory()
    // The program blocks until its output is read, so it is still running.
    let run = try Kvinspect(["ls", specimen.path, "--format", "jsonl"], temporary: temporary.path)
    #expect(try run.output.fileHandleForReading.read(upToCount: 10)?.count == 10)
    #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path).count == 1)

    kill(run.process.processIdentifier, number)
    run.process.waitUntilExit()

    #expect(run.process.terminationStatus == 128 + number)
    #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path) == [])
  }
}
