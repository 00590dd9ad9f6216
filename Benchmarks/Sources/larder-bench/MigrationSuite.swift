import Foundation
import Larder

/// A store written with schema 1, opened with schema 3 and migrated to it.
struct MigrationSuite {
  /// The record type of schema 1.
  private struct ItemV1: Codable, Sendable {
    var id: Int
    var text: String
  }
  private struct ItemV2: Codable, Sendable {
    var id: Int
    var name: String
  }
  private struct Item: Codable, Sendable {
    var id: Int
    var name: String
    var tags: [String]
  }

  private static let name = "items"
  private static let reading1And2 = Schema<Item>(version: 3)
    .reading(1, as: ItemV1.self) { Item(id: $0.id, name: $0.text, tags: []) }
    .reading(2, as: ItemV2.self) { Item(id: $0.id, name: $0.name, tags: []) }
  private static let batchCount = 256

  private let count: Int
  private let plan = Plan(records: 1, order: [0])
  private let workspace: Workspace
  private let original: URL

  init(_ scale: BenchScale, in workspace: Workspace) throws {
    (count, self.workspace) = (scale.records, workspace)
    original = workspace.directory("schema-1")
    let store = try Store(at: original)
    let items = try Self.openV1(store)
    for first in stride(from: 0, to: count, by: Self.batchCount) {
      try store.write { batch in
        for id in first..<min(first + Self.batchCount, count) {
          batch.save(ItemV1(id: id, text: text(of: id)), for: id, in: items)
        }
      }
    }
    try store.close()
  }

  /// The text of a record, with the size of the values in other suites.
  private func text(of id: Int) -> String {
    plan.withValue(UInt32(id)) { $0.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
  }

  private static func openV1(_ store: Store) throws -> Cache<Int, ItemV1> {
    try store.cache(name, of: ItemV1.self, keyedBy: Int.self)
  }

  private static func openV3(
    _ store: Store, _ schema: Schema<Item> = reading1And2
  ) throws -> Cache<Int, Item> {
    try store.cache(name, of: Item.self, keyedBy: Int.self, schema: schema)
  }

  var contests: [Contest] { [opening, migrating] }

  /// Opening the store and the first read, with schema 3 or with schema 1.
  private var opening: Contest {
    var random = WorkloadRandom(seed: Scale.seed)
    return Contest(
      name: "open 1 as schema 3, and read", operations: 1,
      a: {
        try opened("schema-3", Int.random(in: 0..<count, using: &random)) { store, id in
          try Self.openV3(store).value(for: id)?.name
        }
      },
      b: {
        try opened("schema-1-again", Int.random(in: 0..<count, using: &random)) { store, id in
          try Self.openV1(store).value(for: id)?.text
        }
      })
  }

  private func opened(
    _ name: String, _ id: Int, _ read: (Store, Int) throws -> String?
  ) throws -> Duration {
    let directory = try workspace.copyOnce(of: original, as: name)
    var store: Store?
    let time = try timed(expecting: 1) {
      let opened = try Store(at: directory, options: .withoutMemory)
      store = opened
      return try read(opened, id) == text(of: id) ? 1 : 0
    }
    try store?.close()
    return time
  }

  /// Migrating all records, by `migrate` or by reading and saving batches of the same size.
  ///
  /// By hand, concurrent saves may be undone, and the age of every entry is reset.
  private var migrating: Contest {
    Contest(
      name: "migrate", operations: count, mostRounds: 6,
      a: {
        try migrated { store in try store.migrate(Self.openV3(store)).migrated }
      },
      b: { try migrated(saveEach) })
  }

  private func saveEach(_ store: Store) throws -> Int {
    let items = try Self.openV3(store)
    let cursor = try items.entries()
    var saved = 0
    var isAtEnd = false
    while !isAtEnd {
      try store.write { batch throws in
        for _ in 0..<Self.batchCount {
          guard let item = try cursor.next() else {
            isAtEnd = true
            return
          }
          batch.save(try item.entry.get().value, for: item.key, in: items)
          saved += 1
        }
      }
    }
    try store.flush()
    return saved
  }

  /// Migrates a copy and then checks every record without the old readers; returns the duration.
  private func migrated(_ migrate: (Store) throws -> Int) throws -> Duration {
    let store = try Store(at: workspace.copy(of: original, as: "migrated"))
    let time = try timed(expecting: count) { try migrate(store) }
    try store.close()
    let again = try Store(at: workspace.directory("migrated"))
    let cursor = try Self.openV3(again, Schema(version: 3)).entries()
    var right = 0
    while let item = try cursor.next() {
      guard try item.entry.get().value.name == text(of: right), item.key == right else { break }
      right += 1
    }
    guard right == count else {
      throw WrongResults(description: "\(right) of \(count) records were right")
    }
    try again.close()
    return time
  }
}
