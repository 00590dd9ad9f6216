import Foundation
import Larder
import LarderTesting

// In this target every declaration belongs to the main actor unless it says otherwise. What a store
// keeps must say so: its coders run on whatever thread asks.

nonisolated struct Note: Codable, Equatable, Sendable {
  var text: String
}

/// A view model as an app has it: on the main actor, with a cache.
final class NotesModel {
  private(set) var shown: [Note] = []
  private let notes: Cache<String, [Note]>

  init(_ store: Store) throws {
    notes = try store.cache("notes", of: [Note].self)
  }

  func add(_ text: String) throws {
    shown.append(Note(text: text))
    try notes.save(shown, for: "all")
  }

  func reload() throws {
    shown = try notes.value(for: "all") ?? []
  }
}
