import Crypto
import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// kvinspect on a sealed store, as a program.
@Suite(.timeLimit(.minutes(5))) struct SealedInspectionTests {
  /// A sealed store with one small value and one large one, and a file with its key.
  private func store() throws -> SealedStore {
    let sealed = try SealedStore()
    try sealed.with { store in
      let cache = try store.cache("c", of: String.self)
      try cache.save(marker, for: "small", validator: Validator("v-" + marker), tags: ["tag"])
      try cache.save(String(repeating: marker, count: 300), for: "large")
    }
    try Data(repeating: 1, count: 32).write(to: URL(filePath: sealed.directory.path("key")))
    try Data(repeating: 2, count: 32).write(to: URL(filePath: sealed.directory.path("other")))
    try Data((String(repeating: "01", count: 32) + "\n").utf8).write(
      to: URL(filePath: sealed.directory.path("hex")))
    return sealed
  }

  /// What the program writes, and its exit code.
  private func run(_ arguments: [String]) throws -> (output: String, code: Int32) {
    let process = Process()
    let pipe = Pipe()
    process.executableURL = URL(filePath: try #require(ChildProcess.path(of: "kvinspect")))
    process.arguments = arguments
    process.standardInput = FileHandle.nullDevice
    (process.standardOutput, process.standardError) = (pipe, pipe)
    try process.run()
    let bytes = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return (String(decoding: bytes, as: UTF8.self), process.terminationStatus)
  }

  @Test("Without the key, each report shows what is readable, and no value.")
  func locked() throws {
    let sealed = try store()
    for words in [
      ["info"], ["ls"], ["get", "small"], ["get", "small", "--values", "hex"], ["stats"],
      ["verify"], ["why", "small"], ["top"], ["ttl"], ["files"], ["doctor"], ["prefixes"],
    ] {
      let (output, code) = try run([words[0], sealed.path] + words.dropFirst())
      #expect(!output.contains(marker), "\(words)")
      #expect(code == 0, "\(words): \(code)\n\(output)")
    }
    for words in [["digest", sealed.path], ["diff", sealed.path, sealed.path]] {
      let (output, code) = try run(words)
      #expect(code == 64 && output.contains("sealed; --key-file opens them"), "\(output)")
    }
    let (output, _) = try run(["get", sealed.path, "small"])
    #expect(output.contains("sealed") && output.contains("tag"))
    #expect(try run(["info", sealed.path]).output.contains("with key 1, 1 data key\n"))
    let (json, _) = try run(["info", sealed.path, "--format", "json"])
    #expect(json.replacing(" ", with: "").contains("\"userKeys\":[\n\"1\"\n]"), "\(json)")
  }

  @Test("With the key, values and validators are shown.", arguments: ["key", "hex"])
  func opened(file: String) throws {
    let sealed = try store()
    let key = ["--key-file", sealed.directory.path(file)]
    let (small, code) = try run(["get", sealed.path, "small"] + key)
    #expect(code == 0 && small.contains(marker) && small.contains("v-" + marker), "\(small)")
    #expect(try run(["get", sealed.path, "large"] + key).output.contains(marker))
    #expect(try run(["verify", sealed.path] + key).code == 0)
  }

  @Test("A wrong key, a file without a key, and a key for a store that needs none are refused.")
  func refused() throws {
    let sealed = try store()
    for name in ["other", "missing"] {
      let (output, code) = try run(
        ["get", sealed.path, "small", "--key-file", sealed.directory.path(name)])
      #expect(code != 0 && !output.contains(marker), "\(name): \(output)")
    }
    let plain = try SealedStore()
    try plain.with(nil) { try $0.cache("c", of: String.self).save("x", for: "a") }
    let (_, code) = try run(["ls", plain.path, "--key-file", sealed.directory.path("key")])
    #expect(code != 0)
  }

  @Test("An export needs the key and --plaintext.")
  func export() throws {
    let sealed = try store()
    let key = ["--key-file", sealed.directory.path("key")]
    for more in [[], key, ["--plaintext"]] {
      let (output, code) = try run(["export", sealed.path] + more)
      #expect(code != 0 && !output.contains("payload"), "\(more): \(output)")
    }
    let (output, code) = try run(["export", sealed.path, "--plaintext"] + key)
    #expect(code == 0 && output.contains("payload"))
    let payload = try #require(output.split(separator: "\n").first { $0.contains("\"small\"") })
    #expect(payload.contains("payload"))
  }

  @Test("Records are removed, tags invalidated and entries swept without the key; set needs it.")
  func changes() throws {
    let sealed = try store()
    let key = ["--key-file", sealed.directory.path("key")]
    let value = ["set", sealed.path, "small", "--value", "\"set-\(marker)\"", "--write"]
    #expect(try run(value).code != 0)
    let (output, code) = try run(value + key)
    #expect(code == 0, "\(output)")
    #expect(try sealed.filesWithMarker() == [])
    let found = try sealed.with { try $0.cache("c", of: String.self).value(for: "small") }
    #expect(found == "set-" + marker)
    #expect(try run(["remove", sealed.path, "large", "--write"]).code == 0)
    #expect(try run(["invalidate", sealed.path, "tag", "--write"]).code == 0)
    #expect(try run(["sweep", sealed.path, "--write"]).code == 0)
    #expect(try run(["compact", sealed.path, "--write"]).code == 0)
    try sealed.with { store in
      let cache = try store.cache("c", of: String.self)
      for key in ["small", "large"] { #expect(try cache.value(for: key) == nil) }
    }
  }

  @Test("A repair copies sealed records and data keys.")
  func repair() throws {
    let sealed = try store()
    let new = sealed.directory.path("repaired")
    let (output, code) = try run(["repair", sealed.path, "--output", new])
    #expect(code == 0, "\(output)")
    #expect(try SealedStore.files(with: marker, in: sealed.directory.path) == [])
    let (value, _) = try run(
      ["get", new, "small", "--key-file", sealed.directory.path("key")])
    #expect(value.contains(marker))
  }

  @Test("Two stores are compared with the key, and so is a store with its backup.")
  func comparison() throws {
    let sealed = try store()
    let key = ["--key-file", sealed.directory.path("key")]
    let backup = sealed.directory.path("backup")
    try sealed.with { store in
      try store.backup(to: URL(filePath: backup))
      try store.reseal()
    }
    let (same, code) = try run(["diff", sealed.path, backup] + key)
    #expect(code == 0, "\(same)")
    #expect(
      try run(["digest", sealed.path, "--quiet"] + key)
        == run(["digest", backup, "--quiet"] + key))
    try sealed.with { try $0.cache("c", of: String.self).save("other", for: "small") }
    let (different, other) = try run(["diff", sealed.path, backup] + key)
    #expect(other == 1 && different.contains("small") && !different.contains("large"))
  }

  @Test("A store that is open is read with its key, and refused to others without a look at keys.")
  func open() throws {
    let sealed = try store()
    let store = try sealed.open(.key(id: "1", key(1)))
    try store.cache("c", of: String.self).save("while open " + marker, for: "new")
    let (output, code) = try run(
      ["get", sealed.path, "new", "--key-file", sealed.directory.path("key")])
    #expect(code == 0 && output.contains("while open " + marker), "\(output)")
    // Another process that would write finds the lock first.
    let (removal, _) = try run(["remove", sealed.path, "new", "--write"])
    #expect(removal.contains("open") && !removal.contains("seal"), "\(removal)")
    let reader = try sealed.open(.key(id: "1", key(1)), access: .readOnly)
    #expect(try reader.cache("c", of: String.self).value(for: "new") == "while open " + marker)
    #expect(throws: StoreError.self) { try reader.reseal() }
    try reader.close()
    #expect(try sealed.error(opening: nil, access: .readOnly)?.isWrongKey == true)
    try store.close()
  }

  @Test("The page shows values only with the key.", arguments: [true, false])
  func page(hasKey: Bool) throws {
    let sealed = try store()
    let key = hasKey ? ["--key-file", sealed.directory.path("key")] : []
    var server = try ChildProcess(
      try #require(ChildProcess.path(of: "kvinspect")), ["serve", sealed.path, "--quiet"] + key)
    let line = server.readLine()
    let root = try #require(line)
    for view in ["", "entries?cache=c", "entry?cache=c&key=small", "entry?cache=c&key=large"] {
      let address = try #require(URL(string: root + view))
      let text = String(decoding: try Data(contentsOf: address), as: UTF8.self)
      #expect(text.contains("</html>"), "\(view)")
      let shows = hasKey && view.hasPrefix("entry?")
      #expect(text.contains(marker) == shows, "\(view)")
    }
    server.kill()
  }

  @Test("`doctor` notices a marker that denies the data keys; the next opening corrects it.")
  func markerOfFormat() throws {
    let sealed = try store()
    for words in [["compact", sealed.path, "--write"], []] {
      try Data("larder 1\n".utf8).write(to: URL(filePath: "\(sealed.path)/LARDER"))
      let (output, code) = try run(["doctor", sealed.path])
      #expect(code == 3 && output.contains("the store has data keys"), "\(output)")
      if words.isEmpty {
        try sealed.with { _ in }
      } else {
        #expect(try run(words).code == 0)
      }
      #expect(
        try Data(contentsOf: URL(filePath: "\(sealed.path)/LARDER")) == Data("larder 3\n".utf8))
    }
  }

  @Test("The id of a key is written without the commands to a terminal that it may have.")
  func escapes() throws {
    let sealed = try SealedStore()
    try sealed.with(.key(id: "\u{1B}[31mid\u{7}\n", key(1))) { store in
      try store.cache("c", of: String.self).save(marker, for: "a")
    }
    try Data(repeating: 2, count: 32).write(to: URL(filePath: sealed.directory.path("other")))
    for words in [["get", sealed.path, "a"], ["info", sealed.path], ["doctor", sealed.path]] {
      for more in [[], ["--key-file", sealed.directory.path("other")]] {
        let (output, _) = try run(words + more)
        #expect(!output.contains("\u{1B}") && !output.contains("\u{7}"), "\(words) \(more)")
        #expect(more.isEmpty || words[0] == "doctor" || output.contains("31mid"), "\(output)")
      }
    }
  }

  @Test("Values of a cache that has lost its name are opened under the name that it had.")
  func lostName() throws {
    let sealed = try store()
    try sealed.with { store in
      try store.cache("other", of: String.self).save("other " + marker, for: "a")
      var rows = WriteBatch()
      rows.remove(Metadata.cache("c").span.bytes)
      try store.engine.write(&rows, synced: true)
    }
    let new = sealed.directory.path("repaired")
    #expect(try run(["repair", sealed.path, "--output", new]).output.contains("recovered-1"))
    let key = ["--key-file", sealed.directory.path("key")]
    let get = ["get", new, "small", "--cache", "recovered-1"]
    #expect(try !run(get + key).output.contains(marker))
    #expect(try !run(get + key + ["--sealed-as", "d"]).output.contains(marker))
    #expect(try run(get + ["--sealed-as", "c"]).code == 64)
    let (output, code) = try run(get + key + ["--sealed-as", "c"])
    #expect(code == 0 && output.contains(marker) && output.contains("v-" + marker), "\(output)")
    // The other cache still has its name, so all values are exported.
    let export = sealed.directory.path("export")
    let (lines, exported) = try run(
      ["export", new, "--plaintext", "--quiet", "--sealed-as", "c"] + key)
    #expect(exported == 0)
    try lines.write(toFile: export, atomically: true, encoding: .utf8)
    let imported = sealed.directory.path("imported")
    #expect(try run(["import", export, imported]).code == 0)
    let store = try Store(at: URL(filePath: imported))
    let found = try store.cache(
      "recovered-1", of: String.self, keyedBy: Data.self, lifetime: .unlimited)
    #expect(try found.lookup(for: Data("small".utf8)).entry?.value == marker)
    #expect(try found.count() == 2)
    try store.close()
  }
}
