import ExampleSupport
import Foundation
import Larder
import LarderTesting

// A feed that works offline. Articles are fresh for an hour. For a week after that they are stale,
// and shown only if the server cannot be reached. Then they expire.

struct Article: Codable, Sendable {
  var title: String
}

/// A server that can be reached or not.
///
/// A program sends requests instead.
struct Server {
  var isReachable = true
  var articles = [Article(title: "Rain"), Article(title: "Sun")]

  func load() throws -> [Article] {
    guard isReachable else { throw URLError(.notConnectedToInternet) }
    return articles
  }
}

struct FrontPage {
  var server = Server()
  let feed: Cache<String, [Article]>

  /// The text of the screen.
  func screen() throws -> String {
    switch try feed.lookup(for: "front page") {
    case .fresh(let entry):
      return text(entry.value, "up to date")
    case .stale(let entry):
      let hours = entry.age.components.seconds / 3600
      return try reload() ?? text(entry.value, "offline, \(hours) hours old")
    case .expired(let metadata):
      let days = metadata.age.components.seconds / 86_400
      return try reload() ?? "Offline. The last articles are \(days) days old."
    case .missing:
      return try reload() ?? "Offline. There are no articles yet."
    }
  }

  /// Loads and saves the articles; nil if the server cannot be reached.
  private func reload() throws -> String? {
    do {
      let articles = try server.load()
      try feed.save(articles, for: "front page")
      return text(articles, "just loaded")
    } catch is URLError {
      return nil
    }
  }

  private func text(_ articles: [Article], _ note: String) -> String {
    "\(articles.map(\.title).joined(separator: ", ")) (\(note))"
  }
}

let directory = try temporaryDirectory()

let clock = ManualClock()
var options = Store.Options()
options.clock = clock
let store = try Store(at: directory, options: options)

let feed = try store.cache(
  "articles", of: [Article].self,
  lifetime: .fresh(for: .hours(1), thenStaleFor: .weeks(1)))

var page = FrontPage(feed: feed)

@MainActor func show(_ moment: String, _ expected: String) throws {
  let screen = try page.screen()
  print("\(moment): \(screen)")
  expect(screen == expected, expected)
}

page.server.isReachable = false
try show("First start, offline", "Offline. There are no articles yet.")

page.server.isReachable = true
try show("Online", "Rain, Sun (just loaded)")

page.server.articles = [Article(title: "Snow")]
clock.advance(by: .seconds(30 * 60))
try show("Half an hour later", "Rain, Sun (up to date)")

clock.advance(by: .seconds(60 * 60))
try show("An hour later", "Snow (just loaded)")

page.server.isReachable = false
clock.advance(by: .seconds(2 * 86_400))
try show("Two days later, offline", "Snow (offline, 48 hours old)")
// A stale value is not fresh, so the plain read returns nil.
expect(try feed.value(for: "front page") == nil, "no fresh value")

clock.advance(by: .seconds(6 * 86_400))
try show("Six more days, offline", "Offline. The last articles are 8 days old.")

let deleted = try store.sweep()
print("The sweep deleted \(deleted) entry.")
expect(deleted == 1, "one expired entry")

page.server.isReachable = true
try show("Online again", "Snow (just loaded)")

try store.close()
try FileManager.default.removeItem(at: directory)
