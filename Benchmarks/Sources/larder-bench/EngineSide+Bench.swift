import Larder

/// A side that can also write batches, look up missing keys, and scan.
protocol FullSide: Side {
  func putBatches(_ plan: Plan, of count: Int) throws -> Int
  func missEach(_ plan: Plan) throws -> Int
  func scan(_ plan: Plan) throws -> Int
}

extension EngineSide: FullSide {
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

  func missEach(_ plan: Plan) throws -> Int {
    var buffer = ValueBuffer()
    var missing = 0
    for record in plan.order {
      let isFound = try plan.withKey(record) { key throws(StoreError) in
        try engine.get(key, into: &buffer)
      }
      missing += isFound ? 0 : 1
    }
    return missing
  }

  func scan(_ plan: Plan) throws -> Int {
    let first = plan.withKey(plan.order[0]) { key in key.withUnsafeBytes { Array($0) } }
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
}
