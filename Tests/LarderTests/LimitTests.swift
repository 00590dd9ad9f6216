import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// A store takes keys and values up to the documented limits, and refuses larger ones.
@Suite struct LimitTests {
  @Test("Keys may be any text up to 64 KiB.", arguments: StoreKind.allCases)
  func keys(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let texts = try fixture.store.cache("texts", of: Int.self)
    let keys = [
      "", "\u{0}", "a\u{0}", "a", "\u{E9}", "e\u{301}", "\u{65E5}\u{672C}", "\u{1F600}",
      String(repeating: "k", count: 65_536),
    ]
    for (number, key) in keys.enumerated() { try texts.save(number, for: key) }
    try fixture.reopen()
    let again = try fixture.store.cache("texts", of: Int.self)
    for (number, key) in keys.enumerated() {
      #expect(try again.value(for: key) == number, "key \(number)")
      #expect(try again.touch(key))
    }
    #expect(try again.validate().kept == keys.count)
  }

  @Test("A key over the limit is refused, and nothing is written.", arguments: StoreKind.allCases)
  func longKey(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let texts = try fixture.store.cache("texts", of: Int.self)
    let long = String(repeating: "k", count: 65_537)

    #expect(throwsInvalidArgument { try texts.save(1, for: long) })
    #expect(throwsInvalidArgument { try texts.value(for: long) })
    #expect(throwsInvalidArgument { try texts.remove(long) })
    #expect(throwsInvalidArgument { try texts.touch(long) })
    #expect(try fixture.rows(in: .records).isEmpty)
    #expect(try fixture.rows(in: .notes).isEmpty)
  }

  @Test(
    "Values may be empty or up to 32 MiB; larger ones and larger batches are refused.",
    arguments: StoreKind.allCases)
  func values(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let data = try fixture.store.cache("data", of: Data.self, coder: .bytes)
    var random = SplitMix64(seed: 9)
    var largest = Data(count: 32 << 20)
    for index in stride(from: 0, to: largest.count, by: 997) {
      largest[index] = UInt8.random(in: 0...255, using: &random)
    }

    try data.save(Data(), for: "empty")
    try data.save(largest, for: "largest")
    #expect(throwsInvalidArgument { try data.save(largest + Data([0]), for: "larger") })
    #expect(
      throwsInvalidArgument {
        try fixture.store.write { batch in
          for key in ["1", "2"] { batch.save(largest, for: key, in: data) }
        }
      })

    try fixture.reopen()
    let again = try fixture.store.cache("data", of: Data.self, coder: .bytes)
    #expect(try again.value(for: "empty") == Data())
    #expect(try again.value(for: "largest") == largest)
    #expect(try again.lookup(for: "larger").kind == "missing")
    #expect(try again.lookup(for: "1").kind == "missing")
  }
}
