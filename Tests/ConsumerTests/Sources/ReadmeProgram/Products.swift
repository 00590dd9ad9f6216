import Foundation
import Larder
import LarderFeeds
import LarderTesting

// One import for each product is all that a user needs: nothing here names an inner module.

struct Note: Codable, Equatable, Sendable {
  var text: String
}

func useLarder(_ store: Store) throws -> Note? {
  let notes = try store.cache(
    "notes", of: Note.self, keyedBy: UUID.self,
    lifetime: .fresh(for: .days(7), thenStaleFor: .days(23)), coder: .json)
  let id = UUID()
  try store.write { batch in batch.save(Note(text: "hello"), for: id, in: notes) }
  switch try notes.lookup(for: id) {
  case .fresh(let entry), .stale(let entry): return entry.value
  case .expired, .missing: return nil
  }
}

func useLarderFeeds(_ store: Store, client: any HTTPClient, base: URL) throws -> GenresLoader {
  try GenresLoader.genres(from: base, client: client, store: store)
}

func useLarderTesting() throws -> Bool {
  let clock = ManualClock()
  var options = Store.Options()
  options.clock = clock
  let notes = try Store.inMemory(options: options).cache("notes", of: Note.self)
  try notes.save(Note(text: "hello"), for: "a")
  clock.advance(by: .seconds(604_800))
  return try notes.value(for: "a") == nil
}
