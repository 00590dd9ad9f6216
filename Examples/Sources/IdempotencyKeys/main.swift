import ExampleSupport
import Foundation
import Larder

// Requests that must have their effect once, such as payments. A client sends a key of its own with
// each request, and the same one when it tries again because it got no response.

struct Receipt: Codable, Sendable, Equatable {
  var number: Int
  var amount: Int
}

/// What is known of a key: its request has begun, or it has a response.
enum Progress: Codable, Sendable {
  case begun
  case done(Receipt)
}

/// The request has begun before, and its outcome is not known: the client is to ask later.
struct Conflict: Error {}

struct Payments {
  let store: Store
  let progress: Cache<String, Progress>
  /// Has the effect that must not be repeated.
  let charge: @Sendable (Int) async throws -> Receipt

  init(in store: Store, charge: @escaping @Sendable (Int) async throws -> Receipt) throws {
    (self.store, self.charge) = (store, charge)
    progress = try store.cache("payments", of: Progress.self, lifetime: .hours(24))
  }

  func pay(_ amount: Int, key: String) async throws -> Receipt {
    // One of all callers begins, and that survives a power loss before anything is charged.
    let earlier = try await store.run(durability: .powerLoss) {
      try progress.saveIfAbsent(.begun, for: key)
    }
    switch earlier?.value {
    case .done(let receipt)?: return receipt
    case .begun?: throw Conflict()
    case nil: break
    }
    let receipt = try await charge(amount)
    try await store.run(durability: .powerLoss) {
      try progress.save(.done(receipt), for: key)
    }
    return receipt
  }
}

actor Bank {
  private(set) var charged: [Int] = []

  func charge(_ amount: Int) -> Receipt {
    charged.append(amount)
    return Receipt(number: charged.count, amount: amount)
  }
}

let directory = try temporaryDirectory()
var store = try Store(at: directory)
let bank = Bank()
var payments = try Payments(in: store) { await bank.charge($0) }

/// Sends a request several times at once; returns the receipts of those that had one.
nonisolated func send(
  _ amount: Int, key: String, times: Int, to payments: Payments
) async throws -> [Receipt] {
  try await withThrowingTaskGroup(of: Receipt?.self) { group in
    for _ in 0..<times {
      group.addTask {
        do { return try await payments.pay(amount, key: key) } catch is Conflict { return nil }
      }
    }
    var receipts: [Receipt] = []
    for try await receipt in group { if let receipt { receipts.append(receipt) } }
    return receipts
  }
}

let receipts = try await send(100, key: "order 7", times: 20, to: payments)
print("Charged \(await bank.charged.count) time, with receipt number \(receipts[0].number).")
expect(await bank.charged == [100], "the order is charged once")
expect(receipts.allSatisfy { $0 == receipts[0] }, "all receipts are the same")

// It tries again after a restart of the server, and gets the same receipt.
try store.close()
store = try Store(at: directory)
payments = try Payments(in: store) { await bank.charge($0) }
let again = try await payments.pay(100, key: "order 7")
print("After a restart: number \(again.number).")
expect(again == receipts[0], "the receipt is the same")
expect(await bank.charged.count == 1, "nothing is charged again")

try store.close()
try FileManager.default.removeItem(at: directory)
