import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

@testable import LarderInspection

/// Records whose cache's registration is lost are reported by each command, and can be recovered.
@Suite struct OwnerlessTests {
  /// A specimen without the registrations of these caches.
  private static func specimen(
    without names: [String], separatedValueBytes: Int? = nil
  ) throws -> Specimen {
    let specimen = try Specimen(separatedValueBytes: separatedValueBytes)
    try specimen.withEngine { engine in
      var batch = WriteBatch()
      for name in names { batch.remove(Metadata.cache(name).span.bytes) }
      try engine.write(&batch, synced: true)
    }
    return specimen
  }

  private static func verify(_ path: String) throws -> (text: String, status: Outcome) {
    var text = ""
    let status = try Inspection(at: path, now: Specimen.now).verify(style: Style()).write(to: &text)
    return (text, status)
  }

  private static func doctor(
    _ path: String, isDeep: Bool
  ) throws -> (text: String, status: Outcome) {
    var text = ""
    let status = try Inspection.doctor(
      path, now: Specimen.now, isDeep: isDeep, style: Style()
    ).write(to: &text)
    return (text, status)
  }

  @Test("`verify` and `doctor` say how many records no cache owns, and what is to be done.")
  func reported() throws {
    let specimen = try Self.specimen(without: ["lists", "genres"])
    let verified = try Self.verify(specimen.path)
    #expect(verified.status == .damaged)
    #expect(verified.text.contains("problems  2\n"), "\(verified.text)")
    #expect(verified.text.contains("no cache owns its records, of which there are 5"))
    #expect(verified.text.contains("no cache owns its records, of which there are 2"))
    for isDeep in [false, true] {
      let advice = try Self.doctor(specimen.path, isDeep: isDeep)
      #expect(advice.status == .damaged)
      #expect(
        advice.text.contains("No cache owns 7 records: the registration of #1, #2 is lost."),
        "\(advice.text)")
      #expect(advice.text.contains("kvinspect repair \(specimen.path) --output"))
      #expect(!advice.text.contains("The store is damaged:"), "\(advice.text)")
    }
  }

  @Test("An export says what it leaves out, on standard error and by its exit code.")
  func exported() throws {
    let specimen = try Self.specimen(without: ["genres"])
    let temporary = try TemporaryDirectory()
    let found = try Kvinspect(["export", specimen.path], temporary: temporary.path).finish()
    #expect(found.status == 3)
    #expect(found.output.hasSuffix("{\"records\":5,\"leftOut\":5}\n"))
    #expect(found.errors.hasPrefix("kvinspect: 5 records are left out: "), "\(found.errors)")
    let quiet = try Kvinspect(["export", "--quiet", specimen.path], temporary: temporary.path)
      .finish()
    #expect(quiet.status == 3 && quiet.errors == "")
  }

  @Test(
    "`repair` gives them a cache named by its number, in which nothing lives longer.",
    arguments: [nil, 1] as [Int?])
  func repaired(separatedValueBytes: Int?) throws {
    let specimen = try Specimen(separatedValueBytes: separatedValueBytes)
    let clock = ManualClock(Specimen.now)
    var store = try Specimen.open(specimen.path, clock, separatedValueBytes: separatedValueBytes)
    var genres = try store.cache(
      "genres", of: Specimen.Title.self,
      lifetime: .fresh(for: .days(7), thenStaleFor: .days(23)), coder: .json)
    try genres.save(Specimen.Title(name: "own"), for: "own", lifetime: .days(100), tags: ["t"])
    try store.cache("recovered-1", of: Int.self).save(1, for: "k")
    try store.close()
    try specimen.withEngine { engine in
      var batch = WriteBatch()
      batch.remove(Metadata.cache("genres").span.bytes)
      try engine.write(&batch, synced: true)
    }
    let places = try TemporaryDirectory()
    let target = places.path("repaired")
    var text = ""
    let status = try Inspection.repair(specimen.path, to: target, style: Style()).write(to: &text)
    #expect(status == .damaged)
    #expect(text.contains("      6  recovered-1-again\n"), "\(text)")
    #expect(text.contains("6 entries have no cache registration"), "\(text)")
    let verified = try Self.verify(target)
    #expect(verified.status == .fine, "\(verified.text)")
    #expect(try Self.doctor(target, isDeep: true).status == .fine)

    store = try Specimen.open(target, clock, separatedValueBytes: separatedValueBytes)
    let recovered = try store.cache(
      "recovered-1-again", of: Specimen.Title.self, keyedBy: [UInt8].self, lifetime: .days(30),
      coder: .json)
    func value(_ key: String) throws -> String? {
      try recovered.value(for: Array(key.utf8))?.name
    }
    #expect(try value("fresh") == "fresh" && value("own") == "own" && value("expired") == nil)
    // A new cache of the old name does not get them.
    genres = try store.cache("genres", of: Specimen.Title.self, lifetime: .days(7), coder: .json)
    #expect(try genres.count() == 0)
    clock.set(Specimen.now + 40 * 86_400)
    #expect(try value("fresh") == nil && value("own") == "own")
    // Sweeps know of its tags and of its lifetimes.
    try store.invalidate(tag: "t")
    #expect(try value("own") == nil)
    #expect(try store.sweep() >= 6)
    #expect(try recovered.count() == 0)
    try store.close()
  }

  @Test("A cache that was cleared or dropped leaves no records without an owner.")
  func dropped() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    let large = try store.cache("large", of: Int.self)
    for round in 0..<2 {
      try store.write { batch in
        for index in 0..<10_500 { batch.save(index, for: "key \(index)", in: large) }
      }
      if round == 0 { try large.removeAll() } else { try store.drop(cache: "large") }
    }
    try store.close()
    let verified = try Self.verify(specimen.path)
    #expect(verified.status == .fine, "\(verified.text)")
  }
}

// MARK: - Markers

extension OwnerlessTests {
  @Test("`verify` and `doctor` notice a marker that denies the segments; `compact` corrects it.")
  func marker() throws {
    let specimen = try Specimen(separatedValueBytes: 1)
    let marker = "\(specimen.path)/LARDER"
    try SystemFiles().replace(marker, with: Array("larder 1\n".utf8))
    let verified = try Self.verify(specimen.path)
    #expect(verified.status == .damaged)
    #expect(verified.text.contains("problems  1\n"))
    #expect(verified.text.contains("\(marker) says format 1, but the store has segments"))
    for isDeep in [false, true] {
      let advice = try Self.doctor(specimen.path, isDeep: isDeep)
      #expect(advice.status == .damaged)
      #expect(advice.text.contains("kvinspect compact \(specimen.path) --write"))
      #expect(!advice.text.contains("The store is damaged:"), "\(advice.text)")
    }
    // A backup of it is none of a damaged store.
    let places = try TemporaryDirectory()
    for arguments in [
      ["backup", specimen.path, places.path("backup")],
      ["restore", places.path("backup"), places.path("restored")],
      ["compact", specimen.path, "--write"],
    ] {
      let run = try Kvinspect(arguments, temporary: places.path).finish()
      #expect(run.status == 0, "\(arguments): \(run.errors)")
    }
    for path in [specimen.path, places.path("restored")] {
      #expect(try SystemFiles().read("\(path)/LARDER", limit: 64) == Array("larder 2\n".utf8))
      let verified = try Self.verify(path)
      #expect(verified.status == .fine, "\(verified.text)")
    }
  }
}
