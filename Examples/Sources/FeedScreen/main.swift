import ExampleSupport
import Foundation
import Larder
import LarderObservation
import LarderTesting
import Observation

// A screen that shows a feed. It begins with the list in the cache, shows the new list once that is
// loaded, and if loading fails, the error below the old list.

struct Item: Codable, Sendable {
  var title: String
}

/// A view of a program with a terminal for a screen; in SwiftUI it is the body of a `View`.
@MainActor struct FeedScreen {
  let feed: CachedValue<String, [Item]>

  var text: String {
    switch feed.state {
    case .loading: "Loading..."
    case .value(let entry): titles(entry) + (entry.isRefreshing ? " (refreshing)" : "")
    case .absent: "Nothing here."
    case .failed(let error, let old): (old.map { titles($0) + "\n" } ?? "") + "Failed: \(error)"
    }
  }

  private func titles(_ entry: LoadedEntry<[Item]>) -> String {
    entry.value.map(\.title).joined(separator: ", ")
  }
}

// MARK: - The program, with a server that the example scripts

struct ServerIsDown: Error, CustomStringConvertible {
  var description: String { "the server is down" }
}

actor Server {
  private var replies: [[Item]?] = [[Item(title: "Rain")], nil, [Item(title: "Sun")]]

  func load() throws -> [Item] {
    guard let items = replies.removeFirst() else { throw ServerIsDown() }
    return items
  }
}

/// Waits until the screen shows a text, as the toolkit of an app waits for a change.
@MainActor func wait(for text: String, on screen: FeedScreen) async {
  while screen.text != text {
    let (changed, change) = AsyncStream.makeStream(of: Void.self)
    withObservationTracking {
      if screen.text == text { change.finish() }
    } onChange: {
      change.finish()
    }
    for await _ in changed {}
  }
  print(text)
}

let directory = try temporaryDirectory()
let store = try Store(at: directory)
let items = try store.cache("items", of: [Item].self, lifetime: .hours(1))
let server = Server()
let screen = FeedScreen(feed: CachedValue(items, "home") { try await server.load() })

print(screen.text)
await wait(for: "Rain", on: screen)
print("Pulled to refresh, twice:")
await screen.feed.refresh()
await wait(for: "Rain\nFailed: the server is down", on: screen)
await screen.feed.refresh()
await wait(for: "Sun", on: screen)
print("Another part of the program saves a list, and the user signs out:")
try items.save([Item(title: "Snow"), Item(title: "Wind")], for: "home")
await wait(for: "Snow, Wind", on: screen)
try items.removeAll()
await wait(for: "Nothing here.", on: screen)

try store.close()
try FileManager.default.removeItem(at: directory)
