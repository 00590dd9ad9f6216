import ExampleSupport
import Foundation
import Larder
import LarderTesting

// The sessions of a web server. A session ends 30 minutes after it was last used, when its user
// logs out on the device, or when the user logs out everywhere.

struct Session: Codable, Sendable {
  var user: Int
  var device: String
}

struct Sessions {
  let store: Store
  let cache: Cache<UUID, Session>

  init(in store: Store) throws {
    self.store = store
    // Reading a session restarts its lifetime.
    cache = try store.cache(
      "sessions", of: Session.self, keyedBy: UUID.self, lifetime: .minutes(30),
      expiry: .sliding(upTo: .hours(12)))
  }

  /// Starts a session and returns its token, for a cookie.
  func logIn(user: Int, device: String) throws -> UUID {
    let token = UUID()
    try cache.save(
      Session(user: user, device: device), for: token, tags: ["user:\(user)"])
    return token
  }

  /// The session of a request; nil if it has ended.
  func session(for token: UUID) throws -> Session? { try cache.value(for: token) }

  func logOut(_ token: UUID) throws { try cache.remove(token) }

  /// Ends all sessions of a user at once, however many there are.
  func logOutEverywhere(user: Int) throws { try store.invalidate(tag: "user:\(user)") }
}

let directory = try temporaryDirectory()
let clock = ManualClock()
var options = Store.Options()
options.clock = clock
let store = try Store(at: directory, options: options)
let sessions = try Sessions(in: store)

func check(_ name: String, _ token: UUID, isLoggedIn: Bool) throws {
  let session = try sessions.session(for: token)
  print("\(name): \(session.map { "user \($0.user)" } ?? "logged out")")
  expect((session != nil) == isLoggedIn, "\(name) is logged \(isLoggedIn ? "in" : "out")")
}

/// Waits until a read has restarted the lifetime of a session.
///
/// The store does that shortly after the read has returned. A server need not wait for it. This
/// program must, because its clock jumps.
func waitForRestart(_ token: UUID) async throws {
  for _ in 1...10_000 {
    if try sessions.cache.entry(for: token)?.age == .zero { return }
    try await Task.sleep(for: .milliseconds(1))
  }
  expect(false, "the read restarts the lifetime")
}

print("User 42 logs in on a laptop and a phone, user 7 on a tablet and a desk.")
let laptop = try sessions.logIn(user: 42, device: "laptop")
let phone = try sessions.logIn(user: 42, device: "phone")
let tablet = try sessions.logIn(user: 7, device: "tablet")
let desk = try sessions.logIn(user: 7, device: "desk")

print("For two hours, the laptop and the tablet send a request every 20 minutes.")
for _ in 1...6 {
  clock.advance(by: .seconds(20 * 60))
  for token in [laptop, tablet] {
    expect(try sessions.session(for: token) != nil, "a session that is used stays")
    try await waitForRestart(token)
  }
}
try check("laptop", laptop, isLoggedIn: true)
try check("phone", phone, isLoggedIn: false)

// Expired sessions are hidden at once. A sweep deletes them from the disk. A server need not call
// it: the store sweeps in the background, see `options.sweepInterval`.
var deleted = try store.sweep()
print("The sweep deleted \(deleted) sessions: the phone's and the desk's.")
expect(deleted == 2, "two sessions have expired")
try check("desk", desk, isLoggedIn: false)

print("User 42 logs in on the phone again, and logs out everywhere.")
let newPhone = try sessions.logIn(user: 42, device: "phone")
try sessions.logOutEverywhere(user: 42)
try check("laptop", laptop, isLoggedIn: false)
try check("phone", newPhone, isLoggedIn: false)
try check("tablet", tablet, isLoggedIn: true)
deleted = try store.sweep()
expect(deleted == 2, "two sessions were invalidated")

print("User 42 logs in once more. User 7 logs out on the tablet.")
try check("laptop", try sessions.logIn(user: 42, device: "laptop"), isLoggedIn: true)
try sessions.logOut(tablet)
try check("tablet", tablet, isLoggedIn: false)

try store.close()
try FileManager.default.removeItem(at: directory)
