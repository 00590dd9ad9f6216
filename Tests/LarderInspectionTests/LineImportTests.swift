import Foundation
import Larder
import LarderTestSupport
import Testing

@testable import LarderInspection

/// An import takes no line that an export could not have written, and names the one it refuses.
@Suite struct LineImportTests {
  private static let lines = [
    "{\"larderExport\":1,\"store\":\"/s\",\"exportedAt\":\"2026-01-01T00:00:00.000Z\"}",
    "{\"cache\":\"t\",\"registration\":{\"keyKind\":1,\"coder\":4,\"schemaVersion\":1,"
      + "\"byteBudget\":1000,\"newerSchemaVersion\":3,\"features\":1,"
      + "\"lifetime\":{\"fresh\":{\"seconds\":60},\"stale\":{\"seconds\":30}}}}",
    "{\"cache\":\"n\",\"registration\":{\"keyKind\":2,\"coder\":2,\"schemaVersion\":1,"
      + "\"lifetime\":{\"fresh\":{\"unlimited\":true},\"stale\":{\"seconds\":0}}}}",
    "{\"cache\":\"b\",\"registration\":{\"keyKind\":4,\"coder\":1,\"schemaVersion\":1,"
      + "\"lifetime\":{\"fresh\":{\"unlimited\":true},\"stale\":{\"seconds\":0}}}}",
    "{\"cache\":\"t\",\"key\":\"k\",\"savedAtBits\":\"0x41c0000000000000\",\"coder\":\"bytes\","
      + "\"payloadSchemaVersion\":1,\"validator\":\"QQ==\",\"tags\":[\"x\"],"
      + "\"slidesUntilBits\":\"0x41c0000000000001\","
      + "\"lifetime\":{\"fresh\":1,\"stale\":null},\"payload\":\"QUJD\"}",
    "{\"cache\":\"n\",\"key\":\"7\",\"savedAt\":\"2024-02-29T12:30:00.5Z\",\"coder\":\"json\","
      + "\"payloadSchemaVersion\":1,\"payload\":\"WzFd\"}",
    "{\"cache\":\"b\",\"key\":\"0x01ff\",\"savedAt\":\"2024-02-29\",\"coder\":\"json\","
      + "\"payloadSchemaVersion\":1,\"payload\":\"WzFd\"}",
    "{\"records\":3,\"leftOut\":0}",
  ]

  private static func load(_ lines: [String]) throws -> InspectionError? {
    let places = try TemporaryDirectory()
    let (file, target) = (places.path("export.jsonl"), places.path("imported"))
    try Data(lines.map { $0 + "\n" }.joined().utf8).write(to: URL(filePath: file))
    var report = ""
    do {
      _ = try Inspection.importing(
        .lines(file), to: target, now: Specimen.now, style: Style()
      ).write(to: &report)
    } catch {
      // A dry run refuses the same, and nothing is left behind.
      #expect(throws: InspectionError.self) {
        try Inspection.importing(
          .lines(file), to: nil, now: Specimen.now, style: Style()
        ).write(to: &report)
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: places.path).count == 1)
      return error
    }
    return nil
  }

  @Test("The lines are imported as they are.")
  func intact() throws { #expect(try Self.load(Self.lines) == nil) }

  /// The number of a line, and a part of it that is replaced by another text.
  static let damages: [(line: Int, old: String, new: String)] = [
    // Base64
    (5, "QUJD", "===="), (5, "QUJD", "QQ="), (5, "QUJD", "QR=="), (5, "QUJD", "QU JD"),
    (5, "QUJD", "QUJD===="), (5, "QUJD", "QUJ-"), (5, "QQ==", "===="), (5, "QQ==", "QR=="),
    // Dates
    (5, "0x41c0000000000001", "0x41c000000000000"), (5, "\"0x41c0000000000001\"", "null"),
    (5, "0x41c0000000000000", "0x+1c0000000000000"),
    (5, "0x41c0000000000000", "0x-000000000000001"),
    (5, "0x41c0000000000000", "0x41c000000000000"), (5, "0x41c0000000000000", "0X41c0000000000000"),
    (5, "0x41c0000000000000", "0x41c00000000000000"),
    (6, "2024-02-29T12:30:00.5Z", "2024-02-30T12:30:00.5Z"), (6, "2024-02-29", "2023-02-29"),
    (6, "2024-02-29", "2024-04-31"), (6, "2024-02-29", "2024-00-10"),
    (6, "2024-02-29", "2024-13-10"), (6, "2024-02-29", "0000-02-29"),
    (6, "2024-02-29", "2024-2-29"), (6, "2024-02-29", "1900-02-29"), (6, "12:30", "24:30"),
    (6, "12:30", "12:60"), (6, "30:00.5", "30:60"), (6, ".5Z", ".5Zz"), (6, ".5Z", ".Z"),
    (6, ".5Z", ""), (6, "2024-02-29T12:30:00.5Z", "+8d"), (6, "2024-02-29T12:30:00.5Z", "-90s"),
    (7, "2024-02-29", "2024-02-30"), (7, "2024-02-29", "2024-02-29 "),
    (7, "2024-02-29", "20240229"),
    // Members
    (1, "\"store\"", "\"larderExport\":1,\"store\""), (1, "\"store\"", "\"stoer\""),
    (2, "\"coder\":4", "\"coder\":4,\"coder\":4"), (2, "\"coder\":4", "\"coder\":4,\"codre\":4"),
    (2, "{\"seconds\":60}", "{\"seconds\":60,\"seconds\":60}"),
    (2, "\"cache\":\"t\"", "\"cache\":\"t\",\"cache\":\"u\""),
    (2, "\"cache\":\"t\"", "\"cache\":\"t\",\"key\":\"k\""),
    (5, "\"payload\"", "\"payload\":\"QUJD\",\"payload\""),
    (5, "\"key\":\"k\"", "\"key\":\"k\",\"key\":\"l\""),
    (5, "\"fresh\":1", "\"fresh\":1,\"fresh\":2"),
    (5, "\"tags\"", "\"tgas\""), (5, "\"validator\"", "\"valid\\u0000\""),
    (8, "\"leftOut\":0", "\"leftOut\":-1"), (8, "\"leftOut\":0", "\"leftOut\":\"0\""),
    (8, "\"leftOut\":0", "\"leftOut\":0,\"records\":3"), (8, "\"leftOut\"", "\"left\""),
    // Registrations
    (2, "\"byteBudget\":1000", "\"byteBudget\":-1"), (2, "\"byteBudget\":1000", "\"byteBudget\":0"),
    (2, "\"byteBudget\":1000", "\"byteBudget\":1e30"),
    (2, "\"schemaVersion\":1", "\"schemaVersion\":1099511627776"),
    (2, "\"schemaVersion\":1", "\"schemaVersion\":-1"),
    (2, "\"newerSchemaVersion\":3", "\"newerSchemaVersion\":1099511627776"),
    (2, "\"newerSchemaVersion\":3", "\"newerSchemaVersion\":-1"),
    (2, "\"features\":1", "\"features\":4"), (2, "\"features\":1", "\"features\":256"),
    (2, "\"coder\":4", "\"coder\":9"), (2, "\"coder\":4", "\"coder\":0"),
    (2, "\"coder\":4", "\"coder\":-4"), (2, "\"keyKind\":1", "\"keyKind\":0"),
    (2, "\"seconds\":60", "\"seconds\":-60"), (2, "\"seconds\":60", "\"days\":99999999"),
    // Fields of records
    (5, "\"coder\":\"bytes\"", "\"coder\":9"), (5, "\"coder\":\"bytes\"", "\"coder\":4"),
    (5, "\"coder\":\"bytes\"", "\"coder\":\"Bytes\""),
    (5, "\"payloadSchemaVersion\":1", "\"payloadSchemaVersion\":1099511627776"),
    (5, "\"payloadSchemaVersion\":1", "\"payloadSchemaVersion\":1.0"),
    (5, "\"fresh\":1", "\"fresh\":-1"), (5, "\"fresh\":1", "\"fresh\":1e999"),
    (5, "\"fresh\":1", "\"fresh\":\"1\""), (5, "[\"x\"]", "[\"\"]"), (5, "[\"x\"]", "\"x\""),
    (6, "\"key\":\"7\"", "\"key\":\"+7\""), (6, "\"key\":\"7\"", "\"key\":\"07\""),
    (6, "\"key\":\"7\"", "\"key\":\"-0\""), (7, "0x01ff", "0x01f"), (7, "0x01ff", "0x01fg"),
    (7, "0x01ff", "0y01ff"),
  ]

  @Test("A damaged line is refused and named, and no store is created.", arguments: damages)
  func damaged(line: Int, old: String, new: String) throws {
    var lines = Self.lines
    let range = try #require(lines[line - 1].range(of: old))
    lines[line - 1].replaceSubrange(range, with: new)
    let error = try #require(try Self.load(lines), "\(new)")
    #expect(error.status == .damaged, "\(error)")
    #expect(error.description.contains("export.jsonl, line \(line): "), "\(error)")
  }

  @Test("A registration has exactly the members that an import knows.")
  func members() throws {
    var registration = Registration(keys: .text, coder: 1, schemaVersion: 1, lifetime: .days(7))
    registration.byteBudget = 1
    registration.newerSchemaVersion = 2
    registration.features = .tags
    guard case .object(let members)? = JSONReader.read(Array(try registration.json)) else {
      Issue.record("a registration is not a JSON object")
      return
    }
    #expect(Set(members.map(\.name)) == Registration.memberNames)
  }

  @Test("A record or a cache of a later version is left out of an export, which says so.")
  func laterVersion() throws {
    let specimen = try Specimen()
    try specimen.withEngine { engine in
      let key = try #require(
        try engine.keys(from: [0x10]).first { $0.suffix(5) == Array("fresh".utf8)[...] })
      var value = try #require(try engine.get(key.span.bytes))
      value[2] = 9
      var batch = WriteBatch()
      batch.put(key.span.bytes, stamp: Record.stamp) { $0.append(value) }
      try engine.write(&batch, synced: true)
    }
    var (text, note) = ("", "")
    let status = try specimen.inspect().export(
      Selection(), style: Style(), to: &text, noting: { note += $0 })
    #expect(status == .unsupported)
    #expect(text.hasSuffix("{\"records\":9,\"leftOut\":1}\n") && note.hasPrefix("1 records"))
    #expect(try Self.load(text.split(separator: "\n").map(String.init)) == nil)
  }
}
