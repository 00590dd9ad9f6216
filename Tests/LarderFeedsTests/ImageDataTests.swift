import AcceptanceRows
import Foundation
import Larder
import LarderFeeds
import LarderTestSupport
import LarderTesting
import Testing

private let url = ImageBench.url
private let bytes = ImageBench.bytes

/// A load of an image maps the server's responses to bytes or typed errors.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct ImageDataRemoteTests {
  @Test("A new loader of an open cache sends no request and does not use the store.")
  func newLoader() async throws {
    let bench = try ImageBench()

    let messages = try await bench.messages {
      _ = try ImageDataLoader.imageData(client: bench.client, store: bench.store)
    }
    #expect(bench.client.urls == [] && messages == [])
  }

  @Test("A load requests exactly its URL, once.")
  func oneRequest() async throws {
    let bench = try ImageBench(ScriptedClient(.reply(200, Data([1]))))

    _ = try await bench.loader(.remoteOnly).load(url)

    #expect(bench.client.urls.map(\.absoluteString) == [url.absoluteString])
  }

  @Test("Two pending loads are two requests.")
  func twoRequests() async throws {
    let bench = try ImageBench(ScriptedClient(last: .hold))

    async let first = bench.loader.load(url)
    async let second = bench.loader.load(url)
    try await bench.client.waitForHeldRequests(2)
    for index in 0...1 {
      bench.client.release(index, with: .reply(200, bytes))
    }

    #expect(try await [first.value, second.value] == [bytes, bytes])
    #expect(bench.client.urls == [url, url])
  }

  @Test(
    "Any failure of the client is connectivity, a cancellation by others, too.",
    arguments: [
      URLError(.timedOut), URLError(.cancelled), CancellationError(),
      HTTPClientError.unexpectedResponse,
    ] as [any Error])
  func clientFailure(failure: any Error) async throws {
    let bench = try ImageBench(ScriptedClient(.fail(failure)))

    let error = await feedError { try await bench.loader.load(url) }

    guard case .remote(let failure, cache: nil) = error, failure.kind == .connectivity else {
      return unexpected(error)
    }
    #expect(bench.client.urls.count == 1)
  }

  @Test(
    "Any status but 200 is invalid data, and so is an empty body.",
    arguments: [(199, "b"), (201, "b"), (300, "b"), (400, "b"), (404, ""), (500, "b"), (200, "")])
  func invalid(status: Int, body: String) async throws {
    let bench = try ImageBench(ScriptedClient(.reply(status, body), last: .reply(200, Data([1]))))

    let error = await feedError { try await bench.loader.load(url) }

    guard case .remote(let failure, cache: nil) = error, failure.kind == .invalidData else {
      return unexpected(error)
    }
    #expect(bench.client.urls.count == 1)
  }

  @Test("Any bytes are delivered as they are.", arguments: [[0], [0xFF, 0, 0x0A], [32, 10]])
  func anyBytes(body: [UInt8]) async throws {
    let bench = try ImageBench(ScriptedClient(.reply(200, Data(body))))

    let loaded = try await bench.loader.load(url)

    #expect(loaded.value == Data(body) && loaded.origin == .loaded)
  }
}

/// Images are read from and saved to the cache with typed errors.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct ImageDataLocalTests {
  @Test("A load reads the cache with one lookup.")
  func oneLookup() async throws {
    let bench = try ImageBench()

    let messages = await bench.messages {
      await feedError { try await bench.loader(.cacheOnly).load(url) }
    }

    #expect(messages == [.retrieve] && bench.client.urls == [])
  }

  @Test("A cache that cannot be read is the load's own error.")
  func retrievalError() async throws {
    let bench = try ImageBench()
    bench.engine.failReads(.io("unreadable"))

    let error = await feedError { try await bench.loader(.cacheOnly).load(url) }

    guard case .cache(.io("unreadable")) = error else { return unexpected(error) }
  }

  @Test("An image that was never saved is not found.")
  func notFound() async throws {
    let bench = try ImageBench()

    let error = await feedError { try await bench.loader(.cacheOnly).load(url) }

    guard case .notFound = error else { return unexpected(error) }
  }

  @Test(
    "A saved image is delivered without a request, whatever its age.",
    arguments: [0, 7 * day, 100 * 365 * day], StoreKind.allCases)
  func saved(age: TimeInterval, kind: StoreKind) async throws {
    try await withImageBench(on: kind, ScriptedClient(last: .reply(200, Data([7])))) { bench in
      try bench.cache.save(bytes, for: url)
      bench.clock.advance(by: .seconds(age))

      for order in [SourceOrder.cacheOnly, .cacheThenRemote] {
        let messages = try await bench.messages {
          let loaded = try await bench.loader(order).load(url)
          #expect(loaded.value == bytes && loaded.origin != .loaded && loaded.age == .seconds(age))
        }
        #expect(messages == [.retrieve])
      }
      #expect(bench.client.urls == [])
    }
  }

  @Test("Images can have a lifetime.")
  func lifetime() async throws {
    let bench = try ImageBench(ScriptedClient(last: .reply(200, Data([7]))), lifetime: .seconds(60))
    try bench.cache.save(bytes, for: url)

    bench.clock.advance(by: .seconds(59))
    #expect(try await bench.loader.load(url).value == bytes)
    bench.clock.advance(by: .seconds(1))
    #expect(try await bench.loader.load(url).value == Data([7]))
  }

  @Test("A save is one atomic replace.", arguments: StoreKind.allCases)
  func oneReplace(kind: StoreKind) async throws {
    try await withImageBench(on: kind) { bench in
      let messages = try await bench.messages { try bench.cache.save(bytes, for: url) }

      #expect(messages == [.replace(1)])
      #expect(try bench.saved() == bytes)
    }
  }

  @Test("A failed replace is the save's error, and the old image stays.")
  func failedSave() throws {
    let bench = try ImageBench()
    try bench.cache.save(bytes, for: url)
    bench.engine.failWrites(.diskFull)

    let error = #expect(throws: StoreError.self) { try bench.cache.save(Data([7]), for: url) }

    guard case .diskFull = error else { return unexpected(error) }
    #expect(try bench.saved() == bytes)
  }
}

/// An image comes from the cache, or else from the server.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct ImageDataScenarioTests {
  private let online = ScriptedClient(last: .reply(200, bytes))

  @Test("An image that is not saved is loaded, saved, and then delivered.")
  func missIsLoaded() async throws {
    let bench = try ImageBench(online)

    let messages = try await bench.messages {
      let loaded = try await bench.loader.load(url)
      #expect(loaded.value == bytes && loaded.origin == .loaded && loaded.isSaved)
      #expect(bench.engine.messages.last == .replace(1))
    }

    #expect(messages == [.retrieve, .replace(1)])
    #expect(try await bench.loader.load(url).origin != .loaded)
    #expect(bench.client.urls == [url])
  }

  @Test("A cache that cannot be read is skipped.")
  func unreadable() async throws {
    let bench = try ImageBench(online)
    bench.engine.failReads(.io("unreadable"))

    #expect(try await bench.loader.load(url).value == bytes)
    #expect(bench.client.urls == [url])
  }

  @Test("An image that could not be saved is delivered.")
  func failedSave() async throws {
    let bench = try ImageBench(online)
    bench.engine.failWrites(.diskFull)

    let loaded = try await bench.loader.load(url)

    #expect(loaded.value == bytes && !loaded.isSaved)
    guard case .diskFull = loaded.saveFailure else { return unexpected(loaded.saveFailure) }
    #expect(try bench.saved() == nil)
  }

  @Test("The server's failure is the error, and nothing is saved.", arguments: [true, false])
  func failedLoad(isOffline: Bool) async throws {
    let bench = try ImageBench(
      ScriptedClient(last: isOffline ? .fail(URLError(.timedOut)) : .reply(200, Data())))

    let messages = await bench.messages {
      let error = await feedError { try await bench.loader.load(url) }
      #expect(error?.reason == (isOffline ? .connectivity : .invalidData))
    }

    #expect(messages == [.retrieve])
  }
}

/// The cache of image bytes keeps its contract, on disk and in memory.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct ImageDataCacheTests {
  private let other = web("https://img.example.org/other.png")

  @Test("An image that was not saved is not found.", arguments: StoreKind.allCases)
  func nothing(kind: StoreKind) async throws {
    try await withImageBench(on: kind) { bench in
      #expect(try bench.saved() == nil)
      try bench.cache.save(bytes, for: other)
      #expect(try bench.saved() == nil)
    }
  }

  @Test("The last saved image is found.", arguments: StoreKind.allCases)
  func lastSaved(kind: StoreKind) async throws {
    try await withImageBench(on: kind) { bench in
      try bench.cache.save(bytes, for: url)
      #expect(try bench.saved() == bytes)
      try bench.cache.save(Data([2]), for: url)
      #expect(try bench.saved() == Data([2]))
      #expect(try await bench.loader(.cacheOnly).load(url).value == Data([2]))
    }
  }

  @Test("Another store on the same directory finds the image, and may replace it.")
  func anotherInstance() async throws {
    let directory = try TemporaryDirectory()
    let place = URL(filePath: directory.path("store"), directoryHint: .isDirectory)
    for (before, after) in [(nil, [1]), ([1], [2, 3]), ([2, 3], [4])] as [([UInt8]?, [UInt8])] {
      let store = try Store(at: place)
      let loader = try ImageDataLoader.imageData(client: ScriptedClient(), store: store)

      #expect(try loader.cache?.value(for: url) == before.map { Data($0) })
      try loader.cache?.save(Data(after), for: url)
      try store.close()
    }
  }

  @Test("Images do not depend on a feed that names them.", arguments: StoreKind.allCases)
  func independent(kind: StoreKind) async throws {
    try await withImageBench(on: kind) { bench in
      let feed = try ImageFeedLoader.imageFeed(
        at: Feed.base, client: ScriptedClient(), store: bench.store)
      let cache = try #require(feed.cache)
      try bench.cache.save(bytes, for: url)
      #expect(try bench.saved() == bytes)

      try cache.save([FeedImage(id: Feed.feedImage(1).id, url: url)], for: "all")
      try cache.save([Feed.feedImage(2)], for: "all")
      #expect(try bench.saved() == bytes)
      bench.clock.advance(by: .seconds(8 * day))
      #expect(try feed.validate()?.expired == 1)
      #expect(try bench.saved() == bytes)
      try cache.removeAll()
      #expect(try bench.saved() == bytes)
    }
  }

  @Test("Only URLs with the same bytes are the same image.", arguments: StoreKind.allCases)
  func exactKeys(kind: StoreKind) async throws {
    let urls = [
      "https://host/a", "https://host/a/", "https://HOST/a", "HTTPS://host/a", "https://host/A",
      "https://host/%61", "https://host/a?", "https://host/a#", "https://host:443/a",
      "https://host/b/../a", "https://host/a%2fb", "https://host/a%2Fb",
    ].map(web)
    try await withImageBench(on: kind) { bench in
      for (index, url) in urls.enumerated() {
        #expect(try bench.saved(url) == nil, "\(url)")
        try bench.cache.save(Data([UInt8(index)]), for: url)
      }
      for (index, url) in urls.enumerated() {
        #expect(try bench.saved(url) == Data([UInt8(index)]), "\(url)")
        let loaded = try await bench.loader(.cacheOnly).load(url)
        #expect(loaded.value == Data([UInt8(index)]), "\(url)")
      }
    }
  }
}
