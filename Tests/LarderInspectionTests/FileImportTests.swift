import Foundation
import Larder
import LarderTestSupport
import Testing

@testable import LarderInspection

/// `import --kind files` imports every file, or says which one it cannot import.
@Suite struct FileImportTests {
  /// Creates a file in a directory under a name of any bytes.
  private static func create(_ name: [UInt8], in directory: String) throws {
    let path = (Array(directory.utf8) + [UInt8(ascii: "/")] + name + [0]).map {
      CChar(bitPattern: $0)
    }
    let file = open(path, O_WRONLY | O_CREAT, 0o600 as mode_t)
    try #require(file >= 0)
    _ = write(file, "x", 1)
    _ = close(file)
  }

  private static func run(
    _ source: String, in places: borrowing TemporaryDirectory, _ flags: String...
  ) throws -> (status: Int32, output: String, errors: String) {
    let target = flags.contains("--dry-run") ? [] : [places.path("target")]
    let result = try Kvinspect(
      ["import", "--kind", "files", "--cache", "old", source] + target + flags,
      temporary: places.path
    ).finish()
    return (result.status, result.output, result.errors)
  }

  private static func makeSource(in places: borrowing TemporaryDirectory) throws -> String {
    let source = places.path("source")
    try FileManager.default.createDirectory(
      atPath: "\(source)/sub", withIntermediateDirectories: true)
    try create(Array("plain".utf8), in: source)
    try create(Array("sub/d\u{E9}j\u{E0}".utf8), in: source)
    return source
  }

  @Test("Names that are not UTF-8 refuse the import, or are named and counted.")
  func names() throws {
    let places = try TemporaryDirectory()
    let source = try Self.makeSource(in: places)
    try Self.create([0x63, 0x61, 0x66, 0xE9], in: source)
    try Self.create(Array("sub/".utf8) + [0xFF, 0x1B, 0x5B, 0x32, 0x4A], in: source)

    let refused = try Self.run(source, in: places)
    #expect(refused.status == 64 && refused.output == "")
    #expect(
      refused.errors == """
        kvinspect: \(source)/caf\\xe9: the name is not UTF-8 (2 of 4 names are not). \
        --skip-unreadable leaves such entries out

        """)
    #expect(!FileManager.default.fileExists(atPath: places.path("target")))

    let quiet = try Self.run(source, in: places, "--skip-unreadable", "--dry-run", "--quiet")
    #expect(quiet.status == 3 && quiet.errors == "" && quiet.output == "2\n")

    let imported = try Self.run(source, in: places, "--skip-unreadable")
    #expect(imported.status == 3)
    #expect(
      imported.output
        == "2 records, 2 B of values, imported to \(places.path("target")); 2 parts were left out\n"
    )
    #expect(
      imported.errors == """
        kvinspect: left out: \(source)/caf\\xe9: the name is not UTF-8
        kvinspect: left out: \(source)/sub/\\xff\\u001b[2J: the name is not UTF-8

        """)
    let store = try Specimen.open(places.path("target"))
    let cache = try store.cache("old", of: Data.self, lifetime: .days(7), coder: .bytes)
    #expect(try cache.value(for: "sub/d\u{E9}j\u{E0}") == Data("x".utf8))
    try store.close()
  }

  @Test("A file that is too large, and one whose path is too long, is named or left out.")
  func unreadable() throws {
    let places = try TemporaryDirectory()
    let source = try Self.makeSource(in: places)
    try Self.create(Array("large".utf8), in: source)
    try #require(truncate("\(source)/large", off_t(5) << 30) == 0)

    let refused = try Self.run(source, in: places)
    #expect(refused.status == 64)
    #expect(
      refused.errors == """
        kvinspect: \(source)/large: a payload of 5368709120 bytes; the limit is 33554432. \
        --skip-unreadable leaves such entries out

        """)
    try FileManager.default.removeItem(atPath: "\(source)/large")

    let deep = try DeepDirectory(in: source)
    let unlisted = try Self.run(source, in: places)
    #expect(unlisted.status == 5)
    #expect(unlisted.errors.hasPrefix("kvinspect: cannot "), "\(unlisted.errors)")
    #expect(unlisted.errors.contains("File name too long. --skip-unreadable"))
    #expect(unlisted.errors.count < 2000)
    let imported = try Self.run(source, in: places, "--skip-unreadable")
    #expect(imported.status == 3 && imported.output.hasPrefix("2 records, "))
    #expect(imported.errors.split(separator: "\n").count == 1, "\(imported.errors)")
    deep.remove()

    // Everything can be imported now.
    try FileManager.default.removeItem(atPath: places.path("target"))
    let whole = try Self.run(source, in: places)
    #expect(whole.status == 0 && whole.errors == "", "\(whole.errors)")
  }

  // The superuser may list any directory.
  @Test("A directory that may not be listed is named or left out.", .enabled(if: !isSuperuser))
  func unlisted() throws {
    let places = try TemporaryDirectory()
    let source = try Self.makeSource(in: places)
    try #require(chmod("\(source)/sub", 0) == 0)
    defer { _ = chmod("\(source)/sub", 0o700) }
    let refused = try Self.run(source, in: places)
    #expect(refused.status == 5)
    #expect(refused.errors.hasPrefix("kvinspect: cannot list \(source)/sub: "))
    let imported = try Self.run(source, in: places, "--skip-unreadable")
    #expect(imported.status == 3 && imported.output.hasPrefix("1 records, "))
    #expect(imported.errors.hasPrefix("kvinspect: left out: cannot list \(source)/sub: "))
  }

  @Test("`--skip-unreadable` is refused for an export, which is imported completely or not at all.")
  func lines() throws {
    let places = try TemporaryDirectory()
    let result = try Kvinspect(
      ["import", "--skip-unreadable", "-", places.path("target")], temporary: places.path
    ).finish()
    #expect(result.status == 64 && result.errors.contains("needs --kind files or leveldb"))
  }

  @Test("Any name is written on one line, and different names are written differently.")
  func escapes() {
    var random = SplitMix64(seed: 9)
    var seen: [String: [UInt8]] = [:]
    for _ in 0..<2000 {
      let name = random.bytes(Int(random.next() % 6) + 1).filter { $0 != UInt8(ascii: "\\") }
      let text = String(escapingName: name).escapedForTerminal
      #expect(text.unicodeScalars.allSatisfy { $0.isSafeOnTerminal })
      #expect(seen[text, default: name] == name)
      seen[text] = name
    }
    #expect(String(escapingName: Array("e\u{301}\u{1F468}".utf8)) == "e\u{301}\u{1F468}")
  }
}

/// Directories in each other, so deep that the innermost one has no usable path.
private struct DeepDirectory {
  private static let name = String(repeating: "d", count: 240)
  private var descriptors: [Int32] = []

  init(in directory: String) throws {
    descriptors.append(open(directory, O_RDONLY | O_DIRECTORY))
    for _ in 0..<20 {
      try #require(mkdirat(descriptors[descriptors.count - 1], Self.name, 0o700) == 0)
      descriptors.append(
        openat(descriptors[descriptors.count - 1], Self.name, O_RDONLY | O_DIRECTORY))
    }
  }

  func remove() {
    for (index, descriptor) in descriptors.enumerated().reversed() {
      if index > 0 { _ = unlinkat(descriptors[index - 1], Self.name, AT_REMOVEDIR) }
      _ = close(descriptor)
    }
  }
}
