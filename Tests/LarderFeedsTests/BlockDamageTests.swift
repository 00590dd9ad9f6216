import AcceptanceRows
import FeedServer
import Foundation
import Larder
import LarderFeeds
import LarderTestSupport
import LarderTesting
import Testing

/// Values in a table block that LevelDB cannot read are errors, never wrong values.
///
/// The store is a real one on disk. Its tables are damaged while it is closed.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct BlockDamageTests {
  @Test(
    "A value in a damaged block is an error and is not delivered; the next load replaces it.",
    arguments: Composition.all)
  func load(composition: Composition) async throws {
    try await withDamagedBlock(of: composition) { parts, server in
      server.answer(composition.path, with: [.cut, .payload, .cut])

      let offline = await feedError { try await parts.load(nil) }
      #expect(offline?.reason == .connectivity)
      let online = try await parts.load(nil)
      #expect(online.items == composition.sent && !online.fromCache && online.isSaved)

      let next = try await parts.load(nil)
      #expect(next.items == composition.sent && next.fromCache)
    }
  }

  @Test(
    "Validating deletes a value in a damaged block completely, and the next one can be saved.",
    arguments: Composition.all)
  func validate(composition: Composition) async throws {
    try await withDamagedBlock(of: composition) { parts, server in
      server.answer(composition.path, with: [.cut, .payload])

      _ = try parts.validate()

      let left = await feedError { try await parts.load(.cacheOnly) }
      guard case .notFound = left else { return unexpected(left) }
      let offline = await feedError { try await parts.load(nil) }
      guard case .remote(let failure, cache: nil) = offline, failure.kind == .connectivity else {
        return unexpected(offline)
      }
      #expect(try await parts.load(nil).isSaved)
      #expect(try await parts.load(.cacheOnly).items == composition.sent)
    }
  }

  /// Runs `body` with one feed whose saved value lies in a damaged block.
  private func withDamagedBlock(
    of composition: Composition, _ body: (Composition.Parts, FeedServer) async throws -> Void
  ) async throws {
    let directory = try TemporaryDirectory()
    var options = Store.Options()
    options.clock = ManualClock()
    options.compression = false
    // In blocks of tables, not in segments.
    options.advanced.separatedValueBytes = nil
    let place = URL(filePath: directory.path("store"), directoryHint: .isDirectory)
    try await withServer { server in
      let first = try Store(at: place, options: options)
      let filler = Data(repeating: 7, count: options.advanced.blockBytes * 2)
      // Each filler has a block of its own. There are two behind the feed's record: when the feed's
      // cache was cleared, LevelDB looks for its key behind the last one, not in the damaged block.
      try fill("before", of: first).save(filler, for: "k")
      try composition.open(server.url, URLSessionClient.patient, first).save()
      try fill("behind", of: first).save(filler, for: "k")
      try fill("last", of: first).save(filler, for: "k")
      try first.close()
      // Opening the store writes the log to a table.
      try Store(at: place, options: options).close()
      try flipBit(at: composition.oldMark, inTablesOf: place)

      let store = try Store(at: place, options: options)
      let parts = try composition.open(server.url, URLSessionClient.patient, store)
      let found = await feedError { try await parts.load(.cacheOnly) }
      guard case .cache(.corrupt) = found else { return unexpected(found) }
      try await body(parts, server)
      #expect(try fill("before", of: store).value(for: "k") == filler)
      try store.close()
    }
  }

  private func fill(_ name: String, of store: Store) throws -> Cache<String, Data> {
    try store.cache(name, of: Data.self, coder: .bytes)
  }

  /// Flips a bit of the first byte of `mark` in the only table that has it.
  private func flipBit(at mark: String, inTablesOf place: URL) throws {
    let files = try FileManager.default.contentsOfDirectory(
      at: place, includingPropertiesForKeys: nil)
    var places: [(URL, Data, Int)] = []
    for file in files where file.pathExtension == "ldb" {
      let bytes = try Data(contentsOf: file)
      if let range = bytes.firstRange(of: Data(mark.utf8)) {
        places.append((file, bytes, range.lowerBound))
      }
    }
    #expect(places.count == 1)
    var (file, bytes, offset) = try #require(places.first)
    bytes[offset] ^= 1
    try bytes.write(to: file)
  }
}
