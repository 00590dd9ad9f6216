import FeedServer
import Foundation
import Larder
import LarderFeeds
import LarderTestSupport
import LarderTesting
import SimulatedDisk
import Testing

/// Each source order works with a real server, the real client and a real LevelDB store.
@Suite(.timeLimit(.minutes(30))) struct CompositionTests {
  // MARK: - The server dies while its answer arrives

  enum Death: CaseIterable, Sendable {
    /// It closes the connection after half of the bytes that it has declared.
    case closesTheConnection
    /// It ends after half of the bytes that it has declared.
    case endsInABody
    /// It ends in a body of no declared length, which could be taken for its regular end.
    case endsInAChunkedBody
  }

  /// Loads, and lets the server die meanwhile.
  private func load(
    _ composition: Composition, _ parts: Composition.Parts, from server: FeedServer,
    dying death: Death
  ) async -> Result<Delivery, any Error> {
    let answers: [Death: Answer] = [
      .closesTheConnection: .cut, .endsInABody: .stall, .endsInAChunkedBody: .stallChunked,
    ]
    server.answer(composition.path, with: answers[death].map { [$0] } ?? [])
    let load = Task { try await parts.load(nil) }
    if death != .closesTheConnection {
      await server.stalled(1, composition.path)
      await server.stop()
    }
    return await load.result
  }

  @Test(
    "If the server dies within the body, the saved value is delivered, and stays as it was.",
    arguments: Composition.remoteFirst, Death.allCases)
  func deathWithACache(composition: Composition, death: Death) async throws {
    try await withParts(of: composition) { parts, clock, server in
      try parts.save()
      let savedAt = clock.now()
      clock.advance(by: .seconds(7 * day - 1))

      let loaded = try await load(composition, parts, from: server, dying: death).get()

      #expect(loaded.items == parts.old && loaded.fromCache && loaded.age == .seconds(7 * day - 1))
      #expect(loaded.failure == .connectivity)
      #expect(server.count(composition.path) == 1)
      let kept = try await parts.load(.cacheOnly)
      #expect(kept.items == parts.old && kept.savedAt == savedAt)
    }
  }

  @Test(
    "If the server dies within the body and nothing is saved, the load fails and saves nothing.",
    arguments: Composition.all, Death.allCases)
  func deathWithoutACache(composition: Composition, death: Death) async throws {
    try await withParts(of: composition) { parts, _, server in
      let result = await load(composition, parts, from: server, dying: death)

      let error = await feedError { try result.get() }
      guard case .remote(let failure, cache: nil) = error, failure.kind == .connectivity else {
        return unexpected(error)
      }
      #expect(server.count(composition.path) == 1)
      let saved = await feedError { try await parts.load(.cacheOnly) }
      guard case .notFound = saved else { return unexpected(saved) }
    }
  }

  @Test(
    "If the server dies within the body, an expired list is not delivered and not deleted.",
    arguments: [Composition.genres, .characters, .imageFeed], Death.allCases)
  func deathWithAnExpiredCache(composition: Composition, death: Death) async throws {
    try await withParts(of: composition) { parts, clock, server in
      try parts.save()
      clock.advance(by: .seconds(7 * day))

      let result = await load(composition, parts, from: server, dying: death)

      let error = await feedError { try result.get() }
      guard case .remote(let failure, cache: nil) = error, failure.kind == .connectivity else {
        return unexpected(error)
      }
      // It is neither replaced nor deleted: it is fresh again when the clock goes back.
      clock.set(clock.now() - 1)
      #expect(try await parts.load(.cacheOnly).items == parts.old)
    }
  }

  @Test(
    "A fresh value is delivered from the cache without a request.",
    arguments: Composition.cacheFirst
  )
  func noRequest(composition: Composition) async throws {
    try await withParts(of: composition) { parts, _, server in
      server.answer(composition.path, with: [.cut])
      try parts.save()

      #expect(try await parts.load(nil).items == parts.old)
      #expect(server.count(composition.path) == 0)
    }
  }

  /// One feed in a store on disk, asking a server that is started for it.
  private func withParts(
    of composition: Composition,
    _ body: (Composition.Parts, ManualClock, FeedServer) async throws -> Void
  ) async throws {
    let directory = try TemporaryDirectory()
    let clock = ManualClock()
    let store = try Store(
      engine: LevelDBEngine(at: directory.path("store")), options: options(clock), origin: .disk)
    try await withServer { server in
      let parts = try composition.open(server.url, URLSessionClient.patient, store)
      try await body(parts, clock, server)
    }
    try store.close()
  }

  // MARK: - The disk is full

  @Test(
    "With a full disk, loads still deliver and saved values stay readable; saving resumes later.",
    arguments: Composition.all, [true, false])
  func fullDisk(composition: Composition, hasOld: Bool) async throws {
    let disk = SimulatedDisk()
    disk.setCapacity(8 << 20)
    let store = try open(disk)
    let url = try await withServer { server in
      try await loadWithoutRoom(composition, hasOld: hasOld, in: store, on: disk, from: server)
      return server.url
    }
    try store.close()

    let again = try open(disk)
    let parts = try composition.open(url, ScriptedClient(), again)
    #expect(try await parts.load(.cacheOnly).items == composition.sent)
    try again.close()
  }

  private func loadWithoutRoom(
    _ composition: Composition, hasOld: Bool, in store: Store, on disk: SimulatedDisk,
    from server: FeedServer
  ) async throws {
    let others = try Composition.all.filter { $0.name != composition.name }
      .map { try $0.open(server.url, URLSessionClient.patient, store) }
    let parts = try composition.open(server.url, URLSessionClient.patient, store)
    for other in others { try other.save() }
    if hasOld { try parts.save() }
    let rest = try SimulatedFiles(disk).availableBytes(in: "/store")
    disk.setBytes(Array(repeating: 1, count: Int(rest)), of: "/rest")

    // With a fresh value, those that ask the cache first are made to ask the server.
    let order: SourceOrder? = hasOld && composition.isCacheFirst ? .remoteThenCache : nil
    for _ in 1...2 {
      let loaded = try await parts.load(order)
      #expect(loaded.items == composition.sent && !loaded.fromCache && !loaded.isSaved)
      #expect(isForLackOfRoom(loaded.saveFailure), "\(String(describing: loaded.saveFailure))")
    }
    server.answer(composition.path, with: [.cut])
    if hasOld {
      let offline = try await parts.load(order)
      #expect(offline.items == parts.old && offline.fromCache)
    } else {
      let error = await feedError { try await parts.load(nil) }
      guard case .remote(let failure, cache: nil) = error, failure.kind == .connectivity else {
        return unexpected(error)
      }
    }
    for other in others { #expect(try await other.load(.cacheOnly).items == other.old) }

    disk.setBytes([], of: "/rest")
    server.answer(composition.path, with: [.payload])
    let saved = try await parts.load(order)
    #expect(saved.items == composition.sent && saved.isSaved && saved.saveFailure == nil)
  }

  private func open(_ disk: SimulatedDisk) throws -> Store {
    var levelDB = LevelDBOptions()
    levelDB.files = SimulatedFiles(disk)
    levelDB.writeBufferBytes = 64 << 10
    let engine = try LevelDBEngine(at: "/store", options: levelDB)
    return try Store(engine: engine, options: options(ManualClock()), origin: .disk)
  }

  private func isForLackOfRoom(_ error: StoreError?) -> Bool {
    switch error {
    case .diskFull, .writesDisabled: true
    default: false
    }
  }

  // MARK: - The record is damaged

  @Test(
    "A cache-first load skips a damaged record, and its save repairs the record.",
    arguments: Composition.cacheFirst)
  func damageBehindTheCache(composition: Composition) async throws {
    try await withDamage(to: composition) { parts, others, server in
      server.answer(composition.path, with: [.cut, .payload])
      let first = await feedError { try await parts.load(nil) }
      guard case .remote(let failure, cache: nil) = first, failure.kind == .connectivity else {
        return unexpected(first)
      }

      let loaded = try await parts.load(nil)
      #expect(loaded.items == composition.sent && !loaded.fromCache && loaded.isSaved)

      let healed = try await parts.load(nil)
      #expect(healed.items == composition.sent && healed.fromCache)
      #expect(server.count(composition.path) == 2)
      for other in others { #expect(try await other.load(.cacheOnly).items == other.old) }
    }
  }

  @Test(
    "A server-first load reports a damaged record with the server's failure; a save repairs it.",
    arguments: Composition.remoteFirst)
  func damageBehindTheServer(composition: Composition) async throws {
    try await withDamage(to: composition) { parts, others, server in
      server.answer(composition.path, with: [.cut, .brokenJSON, .payload, .cut])
      for failure in [RemoteFailure.Kind.connectivity, .invalidData] {
        let error = await feedError { try await parts.load(nil) }
        guard case .remote(let found, cache: .corrupt) = error, found.kind == failure else {
          return unexpected(error)
        }
      }
      for other in others { #expect(try await other.load(.cacheOnly).items == other.old) }

      #expect(try await parts.load(nil).isSaved)
      let healed = try await parts.load(nil)
      #expect(healed.items == composition.sent && healed.failure == .connectivity)
      for other in others { #expect(try await other.load(.cacheOnly).items == other.old) }
    }
  }

  /// All feeds in one store on disk, each with an old value; the record of one is damaged.
  private func withDamage(
    to composition: Composition,
    _ body: (Composition.Parts, [Composition.Parts], FeedServer) async throws -> Void
  ) async throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path("store"))
    let store = try Store(engine: engine, options: options(ManualClock()), origin: .disk)
    try await withServer { server in
      let parts = try composition.open(server.url, URLSessionClient.patient, store)
      try parts.save()
      try engine.damageOnlyRecord()
      let others = try Composition.all.filter { $0.name != composition.name }
        .map { try $0.open(server.url, URLSessionClient.patient, store) }
      for other in others { try other.save() }
      let found = await feedError { try await parts.load(.cacheOnly) }
      guard case .cache(.corrupt) = found else { return unexpected(found) }
      try await body(parts, others, server)
    }
    try store.close()
  }

  private func options(_ clock: ManualClock) -> Store.Options {
    var options = Store.Options()
    options.clock = clock
    return options
  }
}
