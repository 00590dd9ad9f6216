import Crypto
import Foundation
import Larder

// An app keeps the sessions of its users in a store, at first without a key. A year later it gets
// one, and another year later a new one.

struct Session: Codable, Sendable {
  var user: String
  var token: String
}

let directory = FileManager.default.temporaryDirectory.appending(path: "sealed-\(UUID())")
defer {
  do { try FileManager.default.removeItem(at: directory) } catch { print(error) }
}

/// Opens the store with a key or without one, and closes it after `body`.
@MainActor func withSessions<R>(
  _ encryption: Encryption?, _ body: (Store, Cache<String, Session>) throws -> R
) throws -> R {
  var options = Store.Options()
  options.encryption = encryption
  let store = try Store(at: directory, options: options)
  let sessions = try store.cache("sessions", of: Session.self, lifetime: .days(30))
  let result = try body(store, sessions)
  try store.close()
  return result
}

/// Whether a text is in a file of the store.
@MainActor func isInFiles(_ text: String) throws -> Bool {
  try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
    .contains { try Data(contentsOf: $0).range(of: Data(text.utf8)) != nil }
}

// Made once, and kept where the system keeps secrets.
let first = SymmetricKey(size: .bits256)
let second = SymmetricKey(size: .bits256)

print("== Without a key")
try withSessions(nil) { _, sessions in
  try sessions.save(Session(user: "ada", token: "secret-of-ada"), for: "ada")
}
print("Her token is in the files: \(try isInFiles("secret-of-ada"))")

print("\n== With a key")
let sealed = Encryption.key(id: "2026", first)
try withSessions(sealed) { _, sessions in
  try sessions.save(Session(user: "ben", token: "secret-of-ben"), for: "ben")
  print("Ada's session is still there: \(try sessions.value(for: "ada")?.user ?? "no")")
}
print("Ben's token is in the files: \(try isInFiles("secret-of-ben"))")

// What was saved before is sealed, too, and a compaction removes its bytes.
var options = Store.Options()
options.encryption = sealed
let store = try Store(at: directory, options: options)
let report = try store.reseal()
print("Entries that are sealed now: \(report.sealed), and before: \(report.current)")
try await store.compact()
try store.close()
print("Ada's token is in the files: \(try isInFiles("secret-of-ada"))")

print("\n== The wrong key")
for (name, encryption) in [("no key", nil), ("another key", Encryption.key(id: "x", second))] {
  do {
    try withSessions(encryption) { _, _ in }
  } catch StoreError.wrongKey(let found, _) {
    print("With \(name) it does not open: it is sealed with \(found).")
  }
}

print("\n== A new key")
try withSessions(.key(id: "2027", second, replacing: ["2026": first])) { _, sessions in
  print("Ben's session is there: \(try sessions.value(for: "ben")?.user ?? "no")")
}
do {
  try withSessions(sealed) { _, _ in }
} catch StoreError.wrongKey(let found, let given) {
  print("Key \(given ?? "none") opens it no more, only \(found).")
}
