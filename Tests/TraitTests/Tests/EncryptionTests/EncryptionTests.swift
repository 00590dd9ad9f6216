import Crypto
import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// With the trait `Encryption`, values and validators are sealed on disk.
@Suite(.timeLimit(.minutes(5))) struct EncryptionTests {
  /// A value whose payload is in LevelDB, and one whose payload is in a segment.
  static let texts = [marker, String(repeating: marker, count: 1000)]

  // MARK: - Values

  @Test("Values are read again, and no file has them in plaintext.", arguments: texts)
  func values(value: String) throws {
    let sealed = try SealedStore()
    try sealed.with { store in
      let cache = try store.cache("c", of: String.self)
      try cache.save(value, for: "a", validator: Validator("v-" + marker))
      #expect(try cache.value(for: "a") == value)
      try store.flush()
      #expect(try sealed.filesWithMarker() == [])
    }
    for _ in 0..<2 {
      try sealed.with { store in
        let entry = try #require(try store.cache("c", of: String.self).lookup(for: "a").entry)
        #expect(entry.value == value && entry.validator == Validator("v-" + marker))
      }
      #expect(try sealed.filesWithMarker() == [])
    }
  }

  @Test("The search for plaintext finds it in a store that is not sealed.", arguments: texts)
  func plain(value: String) throws {
    let sealed = try SealedStore()
    try sealed.with(nil) { store in
      try store.cache("c", of: String.self).save(value, for: "a")
    }
    #expect(try sealed.filesWithMarker() != [])
  }

  @Test("Each way to change an entry keeps its value and its validator sealed and readable.")
  func changes() throws {
    let sealed = try SealedStore()
    try sealed.with { store in
      let cache = try store.cache("c", of: String.self, expiry: .sliding)
      for (index, value) in Self.texts.enumerated() {
        let key = "\(index)"
        try cache.save(value, for: key, validator: Validator("v1" + marker), tags: ["t"])
        sealed.clock.advance(by: .seconds(86_400))
        #expect(try cache.touch(key))
        #expect(try cache.lookup(for: key).entry?.validator == Validator("v1" + marker))
        #expect(try cache.touch(key, validator: Validator("v2" + marker)))
        #expect(try cache.lookup(for: key).entry?.validator == Validator("v2" + marker))
        try cache.update(key, keepsValidator: true) { $0 = ($0 ?? "") + "!" }
        let entry = try #require(try cache.lookup(for: key).entry)
        #expect(entry.value == value + "!" && entry.validator == Validator("v2" + marker))
        #expect(entry.tags == ["t"])
      }
    }
    #expect(try sealed.filesWithMarker() == [])
  }

  @Test("An expired entry has its validator, and a touch brings its value back.")
  func expired() throws {
    let sealed = try SealedStore()
    try sealed.with { store in
      let cache = try store.cache("c", of: String.self)
      try cache.save(marker, for: "a", validator: Validator(marker))
      sealed.clock.advance(by: .seconds(8 * 86_400))
      guard case .expired(let metadata) = try cache.lookup(for: "a") else {
        Issue.record("it is not expired")
        return
      }
      #expect(metadata.validator == Validator(marker))
      #expect(try cache.touch("a"))
      #expect(try cache.value(for: "a") == marker)
    }
  }

  @Test("A migration seals what it writes.")
  func migration() throws {
    let sealed = try SealedStore()
    try sealed.with { store in
      let cache = try store.cache("c", of: String.self, coder: .json)
      for value in Self.texts { try cache.save(value, for: "\(value.count)") }
    }
    try sealed.with { store in
      let cache = try store.cache("c", of: String.self)
      #expect(try store.migrate(cache).migrated == 2)
      for value in Self.texts { #expect(try cache.value(for: "\(value.count)") == value) }
    }
    #expect(try sealed.filesWithMarker() == [])
  }

  @Test("Large values are compressed only on request.")
  func compression() throws {
    for isCompressed in [false, true] {
      let sealed = try SealedStore()
      var encryption = Encryption.key(id: "1", key(1))
      encryption.compressesValues = isCompressed
      try sealed.with(encryption) { store in
        let cache = try store.cache("c", of: String.self, memory: .none)
        let value = String(repeating: marker, count: 20_000)
        try cache.save(value, for: "a")
        #expect(try cache.value(for: "a") == value)
        try store.flush()
        #expect((try store.engine.storedBytes() < value.utf8.count) == isCompressed)
      }
    }
  }

  // MARK: - Keys

  @Test("Another key, another id, or none is wrongKey, and changes nothing.")
  func wrongKeys() throws {
    let sealed = try SealedStore()
    try sealed.with { try $0.cache("c", of: String.self).save(marker, for: "a") }
    let before = try sealed.facts()
    for access in [Access.readWrite, .readOnly] {
      let wrong: [(Encryption?, String?)] = [
        (nil, nil), (.key(id: "1", key(2)), "1"), (.key(id: "2", key(1)), "2"),
        (.key(id: "3", key(3), replacing: ["2": key(1)]), "3"),
        (.key(id: "3", key(3), replacing: ["1": key(2)]), "1"),
      ]
      for (encryption, given) in wrong {
        guard
          case .wrongKey(found: "1", given)? = try sealed.error(
            opening: encryption, access: access)
        else {
          Issue.record("opened with a wrong key, or another error: \(String(describing: given))")
          continue
        }
        #expect(try sealed.facts() == before)
      }
      #expect(try sealed.error(opening: .key(id: "1", key(1)), access: access) == nil)
    }
    let value = try sealed.with { try $0.cache("c", of: String.self).value(for: "a") }
    #expect(value == marker)
  }

  @Test("A wrong key is not damage: nothing is set aside.", arguments: [0, 1])
  func notDamage(policy: Int) throws {
    let sealed = try SealedStore()
    try sealed.with { try $0.cache("c", of: String.self).save(marker, for: "a") }
    #expect {
      try sealed.open(nil) { $0.onDamage = policy == 0 ? .recreate : .salvage }
    } throws: {
      ($0 as? StoreError)?.isWrongKey == true
    }
    #expect(!FileManager.default.fileExists(atPath: sealed.path + ".damaged"))
  }

  @Test("Keys of other sizes, and ids that are empty or too long, are refused.")
  func limits() throws {
    let sealed = try SealedStore()
    let wrong: [Encryption] = [
      .key(id: "", key(1)), .key(id: String(repeating: "x", count: 256), key(1)),
      .key(id: "1", SymmetricKey(size: .bits128)), .key(id: "1", key(1), replacing: ["1": key(2)]),
      .key(id: "2", key(2), replacing: ["1": SymmetricKey(size: .bits192)]),
    ]
    for encryption in wrong {
      guard case .invalidArgument? = try sealed.error(opening: encryption) else {
        Issue.record("accepted")
        continue
      }
    }
    #expect(!FileManager.default.fileExists(atPath: sealed.path))
  }

  @Test("A key is replaced, and opens the store no more.")
  func rotation() throws {
    let sealed = try SealedStore()
    try sealed.with { try $0.cache("c", of: String.self).save(marker, for: "a") }
    let rotation = Encryption.key(id: "2", key(2), replacing: ["1": key(1)])
    // A store that is opened for reading is read with the key that is to be replaced.
    let reader = try sealed.open(rotation, access: .readOnly)
    #expect(try reader.cache("c", of: String.self).value(for: "a") == marker)
    try reader.close()
    #expect(try sealed.error(opening: .key(id: "1", key(1))) == nil)

    try sealed.with(rotation) { store in
      let cache = try store.cache("c", of: String.self)
      #expect(try cache.value(for: "a") == marker)
      try cache.save(marker, for: "b")
    }
    #expect(try sealed.error(opening: .key(id: "1", key(1)))?.isWrongKey == true)
    for encryption in [.key(id: "2", key(2)), rotation] {
      try sealed.with(encryption) { store in
        let cache = try store.cache("c", of: String.self)
        for key in ["a", "b"] { #expect(try cache.value(for: key) == marker) }
      }
    }
    #expect(try SealedStore.files(with: "\"key\":\"1\"", in: sealed.path + "/LARDER.keys") == [])
  }

  @Test("A store that is not sealed is read on, and what is saved from then on is sealed.")
  func activation() throws {
    let sealed = try SealedStore()
    try sealed.with(nil) { store in
      try store.cache("c", of: String.self).save("plain", for: "a", validator: "p")
    }
    try sealed.with { store in
      let cache = try store.cache("c", of: String.self)
      #expect(try cache.lookup(for: "a").entry?.validator == "p")
      #expect(try cache.value(for: "a") == "plain")
      // The new validator of a value that is not sealed.
      #expect(try cache.touch("a", validator: Validator(marker)))
      let entry = try #require(try cache.lookup(for: "a").entry)
      #expect(entry.value == "plain" && entry.validator == Validator(marker))
      try cache.save(marker, for: "b")
    }
    #expect(try sealed.filesWithMarker() == [])
    #expect(try sealed.error(opening: nil)?.isWrongKey == true)
  }
}
