import Foundation
import Larder

// Forms in which users write error handling: an owned value lives where an error may be thrown, and
// the `catch` clauses handle some errors and not others. With `throws(StoreError)` on Larder's
// methods the compiler crashed on forms like these (Swift 6.3.1).

struct Note: Codable, Equatable, Sendable {
  var text: String
}

/// Opens a store and adds a note to its list, or returns nil when another process has the store.
func addUnlessLocked(_ note: Note, in directory: URL) throws -> [Note]? {
  do {
    let store = try Store(at: directory)
    let notes = try store.cache("lists", of: [Note].self)
    let old = try notes.value(for: "all") ?? []
    try notes.save(old + [note], for: "all")
    return old
  } catch StoreError.locked {
    return nil
  }
}

/// Falls back on what was there before when a budget is exceeded.
func replace(_ data: Data, for key: String, in cache: Cache<String, Data>) throws -> Data {
  let old = try cache.entry(for: key)
  do {
    let next = data + (old?.value ?? Data())
    try cache.save(next, for: key)
    return next
  } catch StoreError.budgetExceeded {
    return old?.value ?? Data()
  }
}

/// Binds what the error carries, and handles two errors in one clause.
func describeFailure(_ url: URL) throws -> String {
  do {
    let store = try Store(at: url)
    defer { withExtendedLifetime(store) {} }
    return "\(try store.contents().count) caches"
  } catch StoreError.locked(let pid?) {
    return "open in process \(pid)"
  } catch StoreError.locked(nil), StoreError.closed {
    return "open elsewhere"
  } catch let error as StoreError {
    return "\(error)"
  }
}

/// A batch whose closure throws, inside a closure that is rethrown.
func importLines(_ text: [UInt8], into cache: Cache<String, Note>, of store: Store) throws -> Int {
  do {
    return try text.withUnsafeBytes { bytes in
      try store.write { batch throws(StoreError) in
        let lines = bytes.split(separator: UInt8(ascii: "\n"))
        for line in lines {
          guard let note = String(validating: line, as: UTF8.self) else {
            throw StoreError.invalidArgument("a line is not UTF-8")
          }
          batch.save(Note(text: note), for: note, in: cache)
        }
        return lines.count
      }
    }
  } catch StoreError.invalidArgument {
    return 0
  }
}

/// The same with nothing caught and nothing returned.
func importBytes(_ text: Data, into cache: Cache<String, Data>, of store: Store) throws {
  try text.withUnsafeBytes { bytes in
    try store.write { batch throws(StoreError) in
      guard !bytes.isEmpty else { throw StoreError.invalidArgument("nothing to import") }
      batch.save(Data(bytes), for: "import", in: cache)
    }
  }
}

/// A batch in a function that is generic over what the closure returns.
func together<R>(_ store: Store, _ body: (inout Batch) throws -> R) throws -> R? {
  let name = "\(R.self)"
  do {
    return try store.write { batch in try body(&batch) }
  } catch StoreError.closed {
    return name.isEmpty ? try together(store, body) : nil
  }
}

func saveAll<S: Sequence, V>(
  _ values: S, in cache: Cache<String, V>, of store: Store
) throws -> Int where S.Element == (String, V) {
  try store.write { batch in
    var count = 0
    for (key, value) in values {
      guard !key.isEmpty else { throw StoreError.invalidArgument("an empty key") }
      batch.save(value, for: key, in: cache)
      count += 1
    }
    return count
  }
}

/// Generic over the key and the value: saves a value and returns the one before it.
func exchange<Key: CacheKey, Value: Sendable>(
  _ value: Value, for key: Key, in cache: Cache<Key, Value>, refused: inout Int
) throws -> Value? {
  var count = 1
  defer { refused += count }
  do {
    let old = try cache.entry(for: key)
    try cache.save(value, for: key)
    count = 0
    return old?.value
  } catch StoreError.newerSchema(let found, _) {
    count = found
    return nil
  }
}

/// Generic, with a cursor alive and a `defer`.
func readable<Key: CacheKey, Value: Sendable>(
  in cache: Cache<Key, Value>, skipped: inout Int
) throws -> [Key] {
  var keys: [Key] = []
  var failures = 0
  defer { skipped += failures }
  do {
    let cursor = try cache.entries()
    while let item = try cursor.next() {
      switch item.entry {
      case .success: keys.append(item.key)
      case .failure(.undecodable), .failure(.newerSchema): failures += 1
      case .failure(let error): throw error
      }
    }
  } catch StoreError.corrupt(_, let key, _) where key.isEmpty {
    failures += 1
  }
  return keys
}

/// An async function that switches over the error.
func reload(_ cache: Cache<String, Note>) async -> Note {
  let old = Note(text: "nothing")
  do {
    let found = try cache.value(for: "a")
    await Task.yield()
    try cache.save(found ?? old, for: "b")
    return found ?? old
  } catch {
    switch error {
    case StoreError.closed: return Note(text: "closed")
    case StoreError.undecodable(let key, let underlying): return Note(text: "\(key) \(underlying)")
    case let error as StoreError: return Note(text: "\(error)")
    default: return old
    }
  }
}

/// The same in an actor, with a partial catch.
actor Keeper {
  private let notes: Cache<String, [Note]>
  private(set) var failures: [String] = []

  init(_ store: Store) throws { notes = try store.cache("lists", of: [Note].self) }

  func add(_ note: Note, for key: String) throws -> [Note] {
    do {
      let old = try notes.value(for: key) ?? []
      try notes.save(old + [note], for: key)
      return old
    } catch StoreError.diskFull, StoreError.closed {
      failures.append("not added")
      return [note]
    }
  }

  func remove(_ key: String) async throws -> [Note] {
    do {
      let old = try notes.value(for: key) ?? []
      await Task.yield()
      try notes.remove(key)
      return old
    } catch StoreError.writesDisabled(let cause) {
      failures.append(cause)
      return []
    }
  }
}
