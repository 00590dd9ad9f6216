import ExampleSupport
import Foundation
import Larder
import LarderTesting

// A read-through cache in async code: a value that is missing or too old is loaded from a slow
// service and saved, once for all tasks that ask for it meanwhile.

struct User: Codable, Sendable, Equatable {
  var id: Int
  var name: String
  var revision: Int
}

/// A slow service. Each of its replies has another revision.
actor Service {
  private(set) var requests = 0

  func user(_ id: Int) -> User {
    requests += 1
    return User(id: id, name: "user \(id)", revision: requests)
  }
}

struct Users {
  let store: Store
  let service: Service
  let users: Cache<Int, User>
  let counters: Cache<String, Int>

  init(in store: Store, from service: Service) throws {
    (self.store, self.service) = (store, service)
    users = try store.cache("users", of: User.self, keyedBy: Int.self, lifetime: .minutes(10))
    counters = try store.cache("counters", of: Int.self, lifetime: .unlimited)
  }

  func user(_ id: Int) async throws -> User {
    try await users.value(for: id) { await service.user(id) }
  }

  /// Returns several users; those that are missing are loaded with one call.
  func users(_ ids: [Int]) async throws -> [User] {
    let found = try await users.values(for: ids) { missing in
      var replies: [LoadReply<User>] = []
      for id in missing { replies.append(.value(await service.user(id))) }
      return replies
    }
    return found.compactMap(\.self)
  }

  /// Counts a visit, however many tasks do so at once, and returns the new number.
  @discardableResult func countVisit(of id: Int) async throws -> Int {
    try await store.run {
      try counters.update("visits of \(id)") { count in
        let next = (count ?? 0) + 1
        count = next
        return next
      }
    }
  }
}

let directory = try temporaryDirectory()
let clock = ManualClock()
var options = Store.Options()
options.clock = clock
let store = try Store(at: directory, options: options)
let service = Service()
let users = try Users(in: store, from: service)

for _ in 1...2 { print("user 7: \(try await users.user(7).name)") }
var requests = await service.requests
print("requests: \(requests)")
expect(requests == 1, "the second read is answered by the cache")

clock.advance(by: .seconds(10 * 60))
print("10 minutes later, user 7 has revision \(try await users.user(7).revision)")
requests = await service.requests
expect(requests == 2, "an expired user is loaded again")

let several = try await users.users([7, 8, 9])
print("three users: \(several.map(\.name).joined(separator: ", "))")
requests = await service.requests
print("requests: \(requests)")
expect(requests == 4, "only users 8 and 9 are loaded")

let revisions = try await withThrowingTaskGroup(of: Int.self) { group in
  for _ in 1...20 { group.addTask { [users] in try await users.user(10).revision } }
  var revisions: Set<Int> = []
  for try await revision in group { revisions.insert(revision) }
  return revisions
}
requests = await service.requests
print("20 tasks ask for user 10: \(revisions.count) revision, \(requests - 4) request")
expect(revisions.count == 1, "all tasks get the same user")
expect(requests == 5, "one load for all tasks")
expect(store.statistics.caches["users"]?.saves == 5, "one save for each load of a user")

try await withThrowingTaskGroup(of: Void.self) { group in
  for _ in 1...100 { group.addTask { [users] in try await users.countVisit(of: 7) } }
  try await group.waitForAll()
}
let visits = try await users.countVisit(of: 7)
print("visits of user 7: \(visits)")
expect(visits == 101, "no visit is lost")

try store.close()
try FileManager.default.removeItem(at: directory)
