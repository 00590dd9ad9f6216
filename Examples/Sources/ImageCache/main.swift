import ExampleSupport
import Foundation
import Larder
import LarderTesting

// Images by URL, in a cache that holds a limited number of bytes. An image that is no longer fresh
// is validated with its ETag: status 304 makes it fresh again without a download.

/// A server's answer to a request with `If-None-Match`.
enum Answer {
  case ok(Data, etag: String, maxAge: Double)
  case notModified(maxAge: Double)
}

/// A server that knows its images in advance.
///
/// A program sends requests instead.
struct ScriptedServer {
  var images: [URL: (data: Data, etag: String)] = [:]

  func get(_ url: URL, ifNoneMatch etag: String?) throws -> Answer {
    guard let image = images[url] else { throw URLError(.fileDoesNotExist) }
    if etag == image.etag { return .notModified(maxAge: 86_400) }
    return .ok(image.data, etag: image.etag, maxAge: 86_400)
  }
}

struct ImageLoader {
  var server: ScriptedServer
  let images: Cache<URL, Data>

  init(server: ScriptedServer, store: Store, byteBudget: Int = 200_000_000) throws {
    self.server = server
    // The bytes of an image are stored unchanged. A save that would exceed the budget evicts the
    // images that are not read again.
    images = try store.cache(
      "images", of: Data.self, keyedBy: URL.self, coder: .bytes, byteBudget: byteBudget)
  }

  func image(at url: URL) throws -> (data: Data, source: String) {
    switch try images.lookup(for: url) {
    case .fresh(let entry): return (entry.value, "from the cache")
    case .stale(let entry): return try validate(entry.value, at: url, entry.validator)
    case .expired, .missing: return try download(url)
    }
  }

  /// Asks the server whether a stale image is still current.
  private func validate(
    _ data: Data, at url: URL, _ validator: Validator?
  ) throws -> (data: Data, source: String) {
    switch try server.get(url, ifNoneMatch: validator?.text) {
    case .notModified(let maxAge):
      // The image was evicted meanwhile if this returns false. It is current nevertheless.
      try images.touch(url, lifetime: lifetime(maxAge), validator: validator)
      return (data, "not modified")
    case .ok(let newData, let etag, let maxAge):
      try images.save(newData, for: url, lifetime: lifetime(maxAge), validator: Validator(etag))
      return (newData, "downloaded again")
    }
  }

  private func download(_ url: URL) throws -> (data: Data, source: String) {
    guard case .ok(let data, let etag, let maxAge) = try server.get(url, ifNoneMatch: nil) else {
      throw URLError(.badServerResponse)
    }
    try images.save(data, for: url, lifetime: lifetime(maxAge), validator: Validator(etag))
    return (data, "downloaded")
  }

  /// Fresh for the time that the server gives, then kept a month for validation.
  private func lifetime(_ maxAge: Double) -> Lifetime {
    .fresh(for: .seconds(maxAge), thenStaleFor: .days(30))
  }
}

let directory = try temporaryDirectory()
let clock = ManualClock()
var options = Store.Options()
options.clock = clock
let store = try Store(at: directory, options: options)

let urls = ["cat", "dog", "fox", "owl"].compactMap { URL(string: "https://example.com/\($0).png") }
var server = ScriptedServer()
for url in urls { server.images[url] = (Data(repeating: 1, count: 20_000), etag: "\"v1\"") }

// Three of the four images fit.
var loader = try ImageLoader(server: server, store: store, byteBudget: 64_000)

@MainActor func show(_ url: URL, _ expected: String) throws {
  let (data, source) = try loader.image(at: url)
  print("\(url.lastPathComponent): \(source), \(data.count) bytes")
  expect(source == expected, expected)
}

print("Day 1")
try show(urls[0], "downloaded")
try show(urls[0], "from the cache")

clock.advance(by: .seconds(2 * 86_400))
print("Day 3")
try show(urls[0], "not modified")
try show(urls[0], "from the cache")

clock.advance(by: .seconds(2 * 86_400))
print("Day 5, with a new picture of the cat")
loader.server.images[urls[0]] = (Data(repeating: 2, count: 21_000), etag: "\"v2\"")
try show(urls[0], "downloaded again")
try show(urls[1], "downloaded")

clock.advance(by: .seconds(43_200))
print("Half a day later, with the cat on the screen")
try show(urls[2], "downloaded")
try show(urls[0], "from the cache")
try show(urls[3], "downloaded")

// The dog was due first among the images that were not read.
let counts = store.statistics.caches["images"]
let evicted = counts?.deletions.cacheBudget.entries ?? 0
print("evicted: \(evicted); the dog is \(try loader.images.contains(urls[1]) ? "there" : "gone")")
expect(evicted == 1 && (counts?.heldBytes ?? .max) <= 64_000, "one eviction, within the budget")
expect(try loader.images.contains(urls[0]), "the cat, which was read, is still there")

try store.close()
try FileManager.default.removeItem(at: directory)
