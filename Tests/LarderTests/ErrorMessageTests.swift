import Foundation
import LarderTesting
import Testing

@testable import Larder

/// An error message says what happened, to what, why, and what to do.
@Suite struct ErrorMessageTests {
  private static let all: [StoreError] = [
    .encoding(key: "k", underlying: CancellationError()),
    .undecodable(key: "k", underlying: UnreadablePayload.schema(3)),
    .newerSchema(found: 3, known: 2), .corrupt(cache: "notes", key: "k", file: nil),
    .corrupt(cache: "notes", key: "", file: "000005.ldb"), .corrupt(cache: "", key: "", file: nil),
    .locked(pid: 12), .locked(pid: nil), .diskFull, .writesDisabled(cause: "the disk is full"),
    .budgetExceeded(bytes: 2, budget: 1), .conflict(cache: "notes", key: "k", tries: 100), .closed,
    .suspended, .changedMeanwhile,
    .io("no store at /a"), .incompatible("format 9"),
    .invalidArgument("a key of 70000 bytes; the limit is 65536"),
  ]

  @Test("An error's localized description is its description, in whole sentences.")
  func localizedDescriptions() {
    for error in Self.all {
      #expect((error as any Error).localizedDescription == "\(error)")
      #expect("\(error)".hasSuffix(".") && !"\(error)".hasSuffix(".."))
    }
    let underlying: any Error = UnreadablePayload.schema(3)
    #expect(underlying.localizedDescription == "there is no reader for schema version 3")
  }

  @Test("A message about damage ends with what can be done about it.")
  func damage() {
    let record = StoreError.corrupt(cache: "notes", key: "k", file: nil)
    #expect(
      "\(record)" == """
        The entry for key "k" in cache "notes" is damaged. Save or remove the key, or call \
        validate(), which deletes such entries.
        """)
    let wayOut = """
      Open the store with onDamage: .salvage, or copy what is readable with Store.salvage(from:to:).
      """
    let inTable = [
      StoreError.corrupt(cache: "notes", key: "k", file: "000005.ldb"),
      .corrupt(cache: "notes", key: "", file: "000005.ldb"),
      .corrupt(cache: "notes", key: "", file: nil),
      .corrupt(cache: "", key: "", file: "000005.ldb"),
    ]
    for error in inTable { #expect("\(error)".hasSuffix(wayOut)) }
    #expect("\(inTable[0])".contains("key \"k\" in cache \"notes\" cannot be read"))
    #expect("\(inTable[0])".contains("(000005.ldb)"))
  }

  @Test("A cache that is open with another lifetime names both lifetimes.")
  func lifetime() throws {
    let store = Store.inMemory()
    _ = try store.cache("settings", of: Note.self)
    let message = message { try store.cache("settings", of: Note.self, lifetime: .seconds(3600)) }
    #expect(
      message == """
        cache "settings" is already open with lifetime 7 days; this call asks for 1 hour. Open it \
        with the same lifetime, or close the store first.
        """)
  }

  @Test("Every setting that differs is named with both values.")
  func settings() throws {
    let store = Store.inMemory()
    _ = try store.cache("a", of: Note.self)
    func expect<V: Codable & Sendable, K: CacheKey>(
      _ current: String, _ wanted: String, of: V.Type, keyedBy: K.Type = String.self,
      schema: Schema<V> = Schema(version: 1), coder: Coder<V> = .binary, byteBudget: Int? = nil
    ) {
      let message = message {
        try store.cache(
          "a", of: V.self, keyedBy: K.self, schema: schema, coder: coder, byteBudget: byteBudget)
      }
      #expect(message.contains("open with \(current); this call asks for \(wanted). Open it"))
    }
    expect("value type Note", "Int", of: Int.self)
    expect("key type String", "Int", of: Note.self, keyedBy: Int.self)
    expect("key type String", "URL", of: Note.self, keyedBy: URL.self)
    expect("schema version 1", "2", of: Note.self, schema: Schema(version: 2))
    expect("coder binary", "json", of: Note.self, coder: .json)
    expect("byteBudget nil", "1000", of: Note.self, byteBudget: 1000)
    expect(
      "schema readers for no older version", "for versions 0", of: Note.self,
      schema: Schema(version: 1).reading(0, as: Int.self) { Note(title: "\($0)") })
    let several = message {
      try store.cache("a", of: Note.self, schema: Schema(version: 2), coder: .json)
    }
    #expect(
      several == """
        cache "a" is already open with other settings:
          schema version: 1, this call asks for 2
          coder: binary, this call asks for json
        Open it with the same settings, or close the store first.
        """)
  }

  @Test("Lifetimes are written in the largest unit of which they are a whole number.")
  func units() {
    let words = [
      (0, "0 seconds"), (1, "1 second"), (90, "90 seconds"), (120, "2 minutes"),
      (3600, "1 hour"), (5400, "90 minutes"), (86_400, "1 day"), (90_000, "25 hours"),
      (604_800, "7 days"), (0.5, "0.5 seconds"), (1e300, "1e+300 seconds"),
    ]
    for (seconds, text) in words { #expect("\(MaxAge.seconds(seconds))" == text) }
    #expect("\(Lifetime.seconds(3600))" == "fresh for 1 hour")
  }

  private func message<R>(_ body: () throws -> R) -> String {
    do {
      _ = try body()
      return "nothing was thrown"
    } catch StoreError.invalidArgument(let message) {
      return message
    } catch {
      return "\(error)"
    }
  }
}
