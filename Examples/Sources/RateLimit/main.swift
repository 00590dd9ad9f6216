import ExampleSupport
import Foundation
import Larder
import LarderTesting

// A limit on the requests of a client: so many in each minute that begins with a request. Counts
// survive a restart, so a client is not let in again by one.

struct RateLimit {
  let limit: Int
  let counts: Cache<String, Int>

  init(_ limit: Int, in store: Store) throws {
    self.limit = limit
    // A count lasts a minute from its first request, and its lifetime ends it.
    counts = try store.cache("requests", of: Int.self, lifetime: .minutes(1))
  }

  /// Counts a request; returns the seconds after which the client may try again, or nil if the
  /// request is allowed.
  func refusal(of client: String, at now: Date) throws -> Int? {
    guard try counts.increment(client) > limit else { return nil }
    guard let entry = try counts.entry(for: client), let end = counts.expiryDate(of: entry) else {
      return nil
    }
    return Int(end.timeIntervalSince(now).rounded(.up))
  }
}

let directory = try temporaryDirectory()
let clock = ManualClock()
var options = Store.Options()
options.clock = clock
var store = try Store(at: directory, options: options)
var rateLimit = try RateLimit(100, in: store)

/// Sends requests of one client at once; returns how many are allowed.
nonisolated func send(
  _ count: Int, of client: String, to rateLimit: RateLimit, in store: Store, at now: Date
) async throws -> Int {
  try await withThrowingTaskGroup(of: Int.self) { group in
    for _ in 0..<count {
      group.addTask {
        try await store.run { try rateLimit.refusal(of: client, at: now) == nil ? 1 : 0 }
      }
    }
    var allowed = 0
    for try await answer in group { allowed += answer }
    return allowed
  }
}

// 150 requests of one client at once, and one of another.
let allowed = try await send(150, of: "10.0.0.1", to: rateLimit, in: store, at: clock.now())
print("Of 150 requests at once, \(allowed) are allowed.")
expect(allowed == 100, "exactly the limit is allowed")
expect(try rateLimit.refusal(of: "10.0.0.2", at: clock.now()) == nil, "others are not limited")

// Twenty seconds later, after a restart.
clock.advance(by: .seconds(20))
try store.close()
store = try Store(at: directory, options: options)
rateLimit = try RateLimit(100, in: store)
let seconds = try rateLimit.refusal(of: "10.0.0.1", at: clock.now())
print("After a restart: Retry-After: \(seconds ?? 0)")
expect(seconds == 40, "the client waits for the rest of the minute")

clock.advance(by: .seconds(40))
let next = try rateLimit.refusal(of: "10.0.0.1", at: clock.now())
print("A minute after the first request: \(next == nil ? "allowed" : "refused")")
expect(next == nil, "the next minute has begun")

try store.close()
try FileManager.default.removeItem(at: directory)
