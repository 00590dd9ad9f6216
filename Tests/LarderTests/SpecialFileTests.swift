import Foundation
import LarderTestSupport
import Testing

@testable import Larder

/// A store opens only files: it does not wait for a FIFO that has the name of one.
@Suite(.timeLimit(.minutes(30))) struct SpecialFileTests {
  /// Makes a closed store with a log, a table and a segment.
  private func fixture() throws -> Fixture {
    let fixture = try Fixture(.segments)
    let words = try fixture.store.cache("words", of: String.self)
    try words.save("one", for: "a")
    try fixture.engine.compact(EngineRange())
    try words.save("two", for: "b")
    try fixture.store.close()
    return fixture
  }

  private static let readers: [(String, @Sendable (URL) throws -> Void)] = [
    (
      "open",
      { directory in
        var options = Store.Options()
        // Then it reads the mark of a damaged store, too.
        options.onDamage = .salvage
        try Store(at: directory, options: options).close()
      }
    ),
    (
      "open read-only",
      { directory in
        var options = Store.Options()
        options.access = .readOnly
        let store = try Store(at: directory, options: options)
        _ = try store.cache("words", of: String.self).value(for: "a")
        try store.close()
      }
    ),
    (
      "salvage",
      { try Store.salvage(from: $0, to: $0.appendingPathExtension("new")) }
    ),
  ]

  /// The files, and who reads them.
  private static let rows: [(name: String, readers: Set<String>)] = [
    ("CURRENT", ["open", "open read-only", "salvage"]),
    ("MANIFEST", ["open", "open read-only", "salvage"]),
    (".log", ["open", "open read-only", "salvage"]),
    (".ldb", ["open", "open read-only", "salvage"]),
    (".segment", ["open", "open read-only", "salvage"]),
    ("LARDER", ["open", "open read-only", "salvage"]),
    ("LARDER.lock", ["open", "salvage"]),
    ("LARDER.damaged", ["open"]),
  ]

  @Test("A call that reads a FIFO throws, and none waits.", arguments: rows)
  func fifo(row: (name: String, readers: Set<String>)) throws {
    let name = row.name
    for (reader, read) in Self.readers {
      let fixture = try fixture()
      defer { fixture.end() }
      let root = fixture.directory.path(percentEncoded: false)
      let names = try FileManager.default.contentsOfDirectory(atPath: root)
      let place =
        names.first { name.hasPrefix(".") ? $0.hasSuffix(name) : $0.hasPrefix(name + "-") } ?? name
      let fifo = FIFO(inPlaceOf: "\(root)/\(place)")
      defer { fifo.remove() }
      var failure: (any Error)?
      do {
        try read(fixture.directory)
      } catch {
        failure = error
      }
      #expect(!fifo.wasAwaited, "\(reader), \(place)")
      let text = failure.map { "\($0)" } ?? "no error"
      #expect(
        row.readers.contains(reader) ? text.contains("it is a FIFO") : failure == nil,
        "\(reader), \(place): \(text)")
      #expect(failure == nil || failure is StoreError)
      if failure == nil, reader == "salvage" {
        try FileManager.default.removeItem(atPath: "\(root).new")
      }
    }
  }
}
