import Foundation
import Synchronization

// What a program uses to keep values in memory without Larder.

/// A dictionary with a lock.
final class LockedDictionary<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let values: Mutex<[Key: Value]>

  init(_ values: [Key: Value]) { self.values = Mutex(values) }

  func value(for key: Key) -> Value? { values.withLock { $0[key] } }
}

/// Foundation's cache of objects, with values in boxes.
final class ObjectCache<Value: Sendable> {
  private final class Box {
    let value: Value
    init(_ value: Value) { self.value = value }
  }

  private let cache = NSCache<NSString, Box>()

  init(_ values: [String: Value]) {
    for (key, value) in values { cache.setObject(Box(value), forKey: NSString(string: key)) }
  }

  func value(for key: String) -> Value? {
    cache.object(forKey: NSString(string: key))?.value
  }
}

/// A dictionary in front of one JSON file per key, with a lifetime for each value.
final class FileCache<Value: Codable & Sendable>: Sendable {
  private struct Saved: Codable, Sendable {
    let value: Value
    let savedAt: Date
  }

  private let directory: URL
  private let lifetime: TimeInterval
  private let memory = Mutex<[String: Saved]>([:])

  init(in directory: URL, lifetime: TimeInterval) throws {
    (self.directory, self.lifetime) = (directory, lifetime)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
  }

  func save(_ value: Value, for key: String) throws {
    let saved = Saved(value: value, savedAt: Date())
    try JSONEncoder().encode(saved).write(to: file(key), options: .atomic)
    memory.withLock { $0[key] = saved }
  }

  func value(for key: String) throws -> Value? {
    if let saved = memory.withLock({ $0[key] }) { return isFresh(saved) ? saved.value : nil }
    let file = file(key)
    guard FileManager.default.fileExists(atPath: file.path(percentEncoded: false)) else {
      return nil
    }
    let saved = try JSONDecoder().decode(Saved.self, from: Data(contentsOf: file))
    memory.withLock { $0[key] = saved }
    return isFresh(saved) ? saved.value : nil
  }

  private func isFresh(_ saved: Saved) -> Bool {
    Date().timeIntervalSince(saved.savedAt) < lifetime
  }

  private func file(_ key: String) -> URL { directory.appending(path: "\(key).json") }
}
