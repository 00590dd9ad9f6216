import ExampleSupport
import Foundation
import Larder
import Logging
import ServiceLifecycle

// A store in a server that ends on SIGTERM: the server finishes its requests, and then the store is
// closed. A group ends its services in the reverse of their order.

struct StoreService: Service {
  let store: Store

  func run() async throws {
    try await gracefulShutdown()
    try await store.run { try store.close() }
    print("The store is closed.")
  }
}

/// Stands for a server of a framework, which is a `Service` already.
struct Server: Service {
  let visits: Cache<String, Int>
  let store: Store

  func run() async throws {
    for number in 1... {
      let count = try await store.run { try visits.increment("/") }
      print("Request \(count) is answered.")
      if number == 3 { kill(getpid(), SIGTERM) }  // as the system does at the end of a deployment
      if number >= 3 { try await gracefulShutdown() }
      if Task.isShuttingDownGracefully { return print("The server has ended.") }
    }
  }
}

let directory = try temporaryDirectory()
var options = Store.Options()
options.eventHandler = { event in
  if case .read(.failed) = event.kind { print("\(event.cache): \(event.key) could not be read") }
}
let store = try Store(at: directory, options: options)
let visits = try store.cache("visits", of: Int.self, lifetime: .unlimited)

let services = ServiceGroup(
  services: [StoreService(store: store), Server(visits: visits, store: store)],
  gracefulShutdownSignals: [.sigterm], logger: Logger(label: "example"))
try await services.run()

// The next process finds what was acknowledged.
let next = try Store(at: directory)
let count = try next.cache("visits", of: Int.self, lifetime: .unlimited).value(for: "/")
expect(count == 3, "every answered request is counted")
print("The next process knows of \(count ?? 0) requests.")
try next.close()
try FileManager.default.removeItem(at: directory)
