import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Two spellings of one name, equal as text but not as bytes, never become two caches.
@Suite struct CacheNameTests {
  private let composed = "\u{E9}"
  private let decomposed = "e\u{301}"

  /// Whether opening a cache is refused with an error that shows the bytes of both names.
  private func isRefused(_ name: String, in store: Store) -> Bool {
    do {
      _ = try store.cache(name, of: String.self)
      return false
    } catch StoreError.invalidArgument(let message) {
      return message.contains("c3 a9") && message.contains("65 cc 81")
    } catch {
      return false
    }
  }

  @Test(
    "Another spelling of a cache's name is refused, also after reopening.",
    arguments: StoreKind.allCases)
  func anotherSpelling(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try fixture.store.cache(composed, of: String.self).save("kept", for: "key")
    #expect(isRefused(decomposed, in: fixture.store))
    try fixture.reopen()
    #expect(isRefused(decomposed, in: fixture.store))
    let cache = try fixture.store.cache(composed, of: String.self)
    #expect(isRefused(decomposed, in: fixture.store))
    #expect(try cache.value(for: "key") == "kept")
    #expect(try fixture.store.contents().count == 1)
  }

  @Test("A name that was refused leaves nothing behind.")
  func leavesNothing() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    _ = try fixture.store.cache(decomposed, of: String.self)
    let rows = try fixture.rows(in: .metadata).map(\.key)
    #expect(isRefused(composed, in: fixture.store))
    #expect(try fixture.rows(in: .metadata).map(\.key) == rows)
  }

  /// Makes a store with two names that are equal as text, as earlier versions could.
  private func makePair() throws -> Fixture {
    let fixture = try Fixture(.disk)
    try fixture.store.cache(composed, of: String.self).save("one", for: "key")
    try fixture.store.cache("other", of: String.self).save("two", for: "key")
    _ = try fixture.store.cache("third", of: String.self)
    let (old, new) = (Metadata.cache("other"), Metadata.cache(decomposed))
    let value = try #require(try fixture.engine.get(old.span.bytes))
    let body = try #require(Metadata.body(of: value, under: old))
    var rows = WriteBatch()
    rows.remove(old.span.bytes)
    rows.putMetadata(body, under: new)
    try fixture.engine.write(&rows, synced: false)
    try fixture.reopen()
    return fixture
  }

  @Test("A store that holds two spellings opens, and refuses both.")
  func pairRefused() throws {
    let fixture = try makePair()
    defer { fixture.end() }
    #expect(isRefused(composed, in: fixture.store))
    #expect(isRefused(decomposed, in: fixture.store))
    _ = try fixture.store.cache("third", of: String.self)
    let contents = try fixture.store.contents()
    #expect(contents.mapValues(\.isComplete) == [composed: false, "third": true])
  }

  @Test("A sweep deletes expired entries in both caches of a pair.")
  func pairSwept() throws {
    let fixture = try makePair()
    defer { fixture.end() }
    fixture.clock.advance(by: .seconds(10 * 86_400))
    #expect(try fixture.store.sweep() == 2)
  }
}
