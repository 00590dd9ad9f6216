import Foundation
import LarderTesting

@testable import Larder

/// Makes the stores that the tests of the page look at.
///
///     page-store DIR specimen [NOW]   a store with an entry of each kind, saved around NOW
///     page-store DIR entries COUNT    a store with so many small entries
///     page-store DIR caches COUNT     a store with so many caches of one entry
///     page-store DIR limits           keys of 64 KiB, and a value of 32 MiB
///     page-store DIR clear            removes all entries of such a store
///     page-store DIR save             saves an entry for each line of its input, until that ends
@main struct PageStore {
  static func main() throws {
    let words = CommandLine.arguments
    guard words.count >= 3 else { fatalError("page-store DIR specimen|entries|save") }
    switch words[2] {
    case "specimen":
      let now = try words.dropFirst(3).first.map { try Date($0, strategy: .iso8601) } ?? Date()
      try specimen(at: words[1], now: now)
    case "entries": try entries(Int(words[3]) ?? 0, at: words[1])
    case "caches": try caches(Int(words[3]) ?? 0, at: words[1])
    case "limits": try limits(at: words[1])
    case "clear":
      let store = try Store(at: URL(filePath: words[1]))
      try store.cache("numbers", of: Int.self).removeAll()
      try store.close()
    default: try save(at: words[1])
    }
  }

  private static func specimen(at path: String, now: Date) throws {
    let clock = ManualClock(now)
    var options = Store.Options()
    options.clock = clock
    options.sweepInterval = nil
    options.advanced.separatedValueBytes = 4096
    let store = try Store(at: URL(filePath: path), options: options)
    try saveFeed(in: store, clock, now)
    try saveOddities(in: store, clock, now)
    try store.close()
    try damage(path)
  }

  private static func saveFeed(in store: Store, _ clock: ManualClock, _ now: Date) throws {
    struct Episode: Codable {
      var id: Int
      var title: String
      var tags = ["new", "short"]
      var length = 1843.5
      var show: [String: String] = ["name": "The larder", "host": "A. Cook"]
    }
    let feed = try store.cache(
      "feed", of: [Episode].self, lifetime: .fresh(for: .days(7), thenStaleFor: .days(23)),
      coder: .json)
    for page in 0..<40 {
      clock.set(now - Double(page) * 86_400 * 0.9)
      let episodes = (0..<20).map { Episode(id: page * 20 + $0, title: "Episode \($0) & more") }
      try feed.save(episodes, for: "page/\(page)")
    }
    let images = try store.cache(
      "images", of: [UInt8].self, lifetime: .days(30), coder: .bytes, byteBudget: 2_000_000)
    let png = Array(Data(base64Encoded: picture, options: .ignoreUnknownCharacters) ?? Data())
    for number in 0..<60 {
      clock.set(now - Double(number) * 40_000)
      let padding = [UInt8](repeating: UInt8(number), count: number * 700)
      try images.save(png + padding, for: "https://example.com/covers/\(number).png")
    }
    let users = try store.cache(
      "users", of: [String: Int].self, keyedBy: UUID.self, lifetime: .unlimited)
    clock.set(now)
    for number in 0..<25 {
      let id = UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, UInt8(number)))
      try users.save(["visits": number], for: id)
    }
  }

  private static func saveOddities(in store: Store, _ clock: ManualClock, _ now: Date) throws {
    let odd = try store.cache("odd <b>&", of: String.self, coder: .json)
    try odd.save("plain", for: "plain")
    try odd.save(
      "<script>alert(1)</script> \u{202E}desrever\u{7}", for: "<img src=x onerror=alert(1)>")
    try odd.save("quotes", for: "\"' onmouseover='alert(1)")
    try odd.save("right to left", for: "a\u{202E}b")
    try odd.save("spaces", for: "a b+c%2F/../&=?#")
    try odd.save("long", for: String(repeating: "k", count: 60_000))
    try odd.save("tagged", for: "tagged", tags: ["season"])
    try odd.save("damaged", for: "damaged")
    try odd.save("newer", for: "newer")
    clock.set(now - 20 * 86_400)
    try odd.save("old", for: "expired")
    clock.set(now)
    try store.invalidate(tag: "season")
    let notes = try store.cache("notes", of: [UInt8].self, coder: .bytes)
    try notes.save(Array("The first line,\nand the second one.\n".utf8), for: "text")
    let blobs = try store.cache("blobs", of: [UInt8].self, coder: .bytes)
    try blobs.save((0..<3000).map { UInt8(truncatingIfNeeded: $0 &* 37) }, for: "binary")
    try blobs.save([UInt8](repeating: 7, count: 200_000), for: "in a segment")
    let wide = try store.cache("wide", of: [Int].self, coder: .json)
    try wide.save(Array(0..<20_000), for: "many numbers")
  }

  /// Damages one record, and makes another one of a later format.
  private static func damage(_ path: String) throws {
    let engine = try LevelDBEngine(at: path)
    let cursor = try engine.cursor(over: EngineRange(prefix: [KeySpace.records.rawValue]))
    var found: [(key: [UInt8], value: [UInt8])] = []
    while try cursor.next() {
      cursor.withEntry { key, value in
        let key = [UInt8](key)
        for end in ["damaged", "newer"] where key.ends(with: end) {
          found.append((key, [UInt8](value)))
        }
      }
    }
    for (key, value) in found {
      var value = value
      var batch = WriteBatch()
      if key.ends(with: "damaged") {
        value[value.count - 1] ^= 0xFF
        batch.put(key.span.bytes, value.span.bytes)
      } else {
        value[0] = 2
        batch.put(key.span.bytes, stamp: Record.stamp) { $0.append(value) }
      }
      try engine.write(&batch, synced: false)
    }
    try engine.close()
  }

  private static func entries(_ count: Int, at path: String) throws {
    let store = try Store(at: URL(filePath: path))
    let cache = try store.cache("numbers", of: Int.self)
    for start in stride(from: 0, to: count, by: 1000) {
      try store.write { batch in
        for number in start..<min(start + 1000, count) {
          batch.save(number, for: "group \(number % 20)/\(number)", in: cache)
        }
      }
    }
    try store.close()
  }

  private static func caches(_ count: Int, at path: String) throws {
    let store = try Store(at: URL(filePath: path))
    for number in 0..<count {
      try store.cache("cache \(number)", of: Int.self).save(number, for: "key")
    }
    try store.close()
  }

  private static func limits(at path: String) throws {
    let store = try Store(at: URL(filePath: path))
    let keys = try store.cache("keys", of: Int.self)
    for number in 0..<100 {
      let end = "\(number)"
      let start = String(repeating: "\u{E9}", count: (65_536 - end.utf8.count) / 2)
      try keys.save(number, for: start + end)
    }
    let values = try store.cache("values", of: [UInt8].self, coder: .bytes)
    try values.save(
      (0..<(32 << 20) - 100).map { UInt8(truncatingIfNeeded: $0 ^ $0 >> 8) }, for: "bytes")
    let text = "[" + String(repeating: "1,", count: (16 << 20) - 100) + "1]"
    try values.save(Array(text.utf8), for: "numbers")
    try store.close()
  }

  private static func save(at path: String) throws {
    let store = try Store(at: URL(filePath: path))
    let cache = try store.cache("numbers", of: Int.self)
    say("open")
    while let line = readLine() {
      try cache.save(line.utf8.count, for: line)
      say("saved")
    }
    try store.close()
  }

  /// Writes a line at once.
  private static func say(_ text: String) {
    FileHandle.standardOutput.write(Data((text + "\n").utf8))
  }

  /// A picture of 96 by 64 pixels.
  private static let picture = """
      iVBORw0KGgoAAAANSUhEUgAAAGAAAABACAIAAABqVuVZAAAAj0lEQVR42u3aMRGAQBADwDPxOqgw8ybokYAqpKEh \
      HXO3MxGQbJ06rjfKus8oz64of+tTgAABAgQIECBAgAABAgQIECBAzYCmDU77AAIECBAgQIAAAQIECBAgQIAAdQOa \
      NjjtAwgQIECAAAECBAgQIECAAAEC1A3IgcrDDBAgQIAAAQIECBAgQIAAAQI0CugDCHoxaS+NoF4AAAAASUVORK5C \
      YII=
    """
}

extension [UInt8] {
  fileprivate func ends(with text: String) -> Bool {
    suffix(text.utf8.count).elementsEqual(text.utf8)
  }
}
