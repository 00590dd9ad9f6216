import Larder
import LarderShared
import LarderTestSupport
import Testing

/// The keys of entries on a server.
@Suite struct SharedKeysTests {
  @Test(
    "A key has the namespace, the cache and the key as on disk, with braces written out.",
    arguments: [
      ("feeds", "a", "ld1:shop:feeds:a"), ("feeds", "", "ld1:shop:feeds:"),
      ("feeds", "{a}:%7B", "ld1:shop:feeds:%7Ba%7D:%257B"),
      ("a:{b}%", "c", "ld1:shop:a%3A%7Bb%7D%25:c"), ("\u{E9}", "\u{E9}", "ld1:shop:\u{E9}:\u{E9}"),
    ])
  func written(cache: String, key: String, expected: String) throws {
    let keys = try SharedKeys(namespace: "shop", cache: cache)
    let written = try keys.key(for: Array(key.utf8))
    #expect(written == Array(expected.utf8))
    #expect(keys.userKey(of: written) == Array(key.utf8))
    #expect(SharedKeys.prefix(of: written).map(Array.init) == keys.prefix)
  }

  @Test("No two entries have the same key, whatever their bytes, and each is found again.")
  func different() throws {
    let seed = testSeed()
    var random = SplitMix64(seed: seed)
    let bytes = Array("%{}:7B25\u{0}".utf8)
    var entries: [[UInt8]: String] = [:]
    for _ in 0..<5000 {
      let cache = String(
        decoding: (0..<random.below(4) + 1).map { _ in bytes[random.below(9)] }, as: UTF8.self)
      let key = (0..<random.below(5)).map { _ in bytes[random.below(9)] }
      let keys = try SharedKeys(namespace: "n", cache: cache)
      let written = try keys.key(for: key)
      let entry = "\(Array(cache.utf8)) \(key)"
      #expect(entries[written, default: entry] == entry, "seed \(seed)")
      entries[written] = entry
      #expect(keys.userKey(of: written) == key, "seed \(seed)")
      #expect(SharedKeys.prefix(of: written).map(Array.init) == keys.prefix, "seed \(seed)")
    }
  }

  @Test(
    "A key that no entry has is refused.",
    arguments: [
      "", "ld1:shop:feed:a", "ld1:shop:feeds", "ld2:shop:feeds:a", "ld1:shop:feeds:{",
      "ld1:shop:feeds:}", "ld1:shop:feeds:%", "ld1:shop:feeds:%2", "ld1:shop:feeds:%7b",
      "ld1:shop:feeds:%3A", "ld1:shop:feeds:%41",
    ])
  func foreign(key: String) throws {
    let keys = try SharedKeys(namespace: "shop", cache: "feeds")
    #expect(keys.userKey(of: Array(key.utf8)) == nil)
  }

  @Test("The key of the lease is no entry's, and in the namespace.")
  func lease() throws {
    let key = try SharedKeys.leaseKey(ofNamespace: "shop")
    #expect(key == Array("ld1:shop:lease".utf8))
    #expect(SharedKeys.prefix(of: key) == nil)
  }

  @Test(
    "A namespace that would not be one is refused.",
    arguments: ["", String(repeating: "a", count: 65), "a{b}", "a:b", "50%", "a\nb", "a\u{1B}[2J"])
  func namespaces(name: String) {
    #expect(throws: StoreError.self) { try SharedKeys(namespace: name, cache: "a") }
    #expect(throws: StoreError.self) { try SharedKeys.leaseKey(ofNamespace: name) }
  }

  @Test("A key may have 1,024 bytes with what stands before it, as they are written.")
  func limit() throws {
    let keys = try SharedKeys(namespace: "shop", cache: "feeds")
    let room = 1024 - "ld1:shop:feeds:".utf8.count
    #expect(try keys.key(for: [UInt8](repeating: 0, count: room)).count == 1024)
    #expect(throws: StoreError.self) { try keys.key(for: [UInt8](repeating: 0, count: room + 1)) }
    let brace = UInt8(ascii: "{")
    #expect(throws: StoreError.self) {
      try keys.key(for: [UInt8](repeating: brace, count: room / 3 + 1))
    }
  }
}
