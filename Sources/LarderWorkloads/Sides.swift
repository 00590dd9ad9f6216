import Foundation
import LarderBytes
import LarderEngine

/// One side of a contest: the same work, done by Larder's engine or by C++.
///
/// Every call returns how many results were what the plan says.
protocol Side {
  func putEach(_ plan: Plan) throws -> Int
  func putBatches(_ plan: Plan, of count: Int) throws -> Int
  func getEach(_ plan: Plan) throws -> Int
  func missEach(_ plan: Plan) throws -> Int
  func scan(_ plan: Plan) throws -> Int
  func close() throws
}

/// Larder's engine, called as `Larder` calls it: through the protocol.
struct EngineSide: Side {
  private let engine: any StorageEngine

  init(at directory: URL) throws {
    engine = try LevelDBEngine(at: directory.path(percentEncoded: false), options: LevelDBOptions())
  }

  func putEach(_ plan: Plan) throws -> Int {
    var batch = WriteBatch()
    for record in plan.order {
      batch.reset()
      plan.withKey(record) { key in plan.withValue(record) { value in batch.put(key, value) } }
      try engine.write(&batch, synced: false)
    }
    return plan.order.count
  }

  func putBatches(_ plan: Plan, of count: Int) throws -> Int {
    var batch = WriteBatch()
    for (step, record) in plan.order.enumerated() {
      plan.withKey(record) { key in plan.withValue(record) { value in batch.put(key, value) } }
      guard (step + 1).isMultiple(of: count) || step + 1 == plan.order.count else { continue }
      try engine.write(&batch, synced: false)
      batch.reset()
    }
    return plan.order.count
  }

  func getEach(_ plan: Plan) throws -> Int {
    var buffer = ValueBuffer()
    var right = 0
    for record in plan.order {
      let isFound = try plan.withKey(record) { key throws(EngineError) in
        try engine.get(key, into: &buffer)
      }
      if isFound, buffer.withBytes({ plan.matches($0, record) }) { right += 1 }
    }
    return right
  }

  func missEach(_ plan: Plan) throws -> Int {
    var buffer = ValueBuffer()
    var missing = 0
    for record in plan.order {
      let isFound = try plan.withKey(record) { key throws(EngineError) in
        try engine.get(key, into: &buffer)
      }
      missing += isFound ? 0 : 1
    }
    return missing
  }

  func scan(_ plan: Plan) throws -> Int {
    let first = plan.withKey(plan.order[0]) { key in [UInt8](key) }
    let cursor = try engine.cursor(over: EngineRange(from: first))
    var right = 0
    for record in plan.order {
      guard try cursor.next() else { break }
      right += cursor.withEntry { key, value in
        plan.matches(key: key, record) && plan.matches(value, record) ? 1 : 0
      }
    }
    return right
  }

  func compact() throws { try engine.compact(EngineRange()) }

  func close() throws { try engine.close() }
}
