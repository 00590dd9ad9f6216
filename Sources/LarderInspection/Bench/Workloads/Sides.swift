import Foundation
import Larder

/// One side of a contest: the same work, done by Larder's engine or without it.
///
/// Every call returns the number of results that matched the plan.
protocol Side {
  func putEach(_ plan: Plan) throws -> Int
  func getEach(_ plan: Plan) throws -> Int
  func close() throws
}

/// Larder's engine, called through the protocol, as `Larder` calls it.
struct EngineSide: Side {
  let engine: any StorageEngine

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

  func getEach(_ plan: Plan) throws -> Int {
    var buffer = ValueBuffer()
    var right = 0
    for record in plan.order {
      let isFound = try plan.withKey(record) { key throws(StoreError) in
        try engine.get(key, into: &buffer)
      }
      if isFound, buffer.withBytes({ plan.matches($0, record) }) { right += 1 }
    }
    return right
  }

  func compact() throws { try engine.compact(EngineRange()) }

  func close() throws { try engine.close() }
}
