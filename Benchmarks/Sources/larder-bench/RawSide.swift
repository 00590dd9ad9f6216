import Foundation
import Larder
import RawLevelDB

/// LevelDB in C++, opened with the engine's options.
struct RawSide: FullSide {
  private let database: OpaquePointer

  /// The engine's options.
  static let options = {
    let settings = LevelDBOptions()
    return raw_options(
      compression: settings.compression, reuse_logs: settings.reusesLogs,
      filter_bits_per_key: Int32(settings.filterBitsPerKey),
      max_open_files: Int32(settings.maxOpenFiles), block_bytes: settings.blockBytes,
      write_buffer_bytes: settings.writeBufferBytes,
      block_cache_bytes: settings.blockCacheBytes, max_file_bytes: settings.maxFileBytes)
  }()

  init(at directory: URL) {
    database = raw_open(directory.path(percentEncoded: false), Self.options)
  }

  func putEach(_ plan: Plan) -> Int {
    plan.withRaw { raw_put_each(database, $0) }
    return plan.order.count
  }

  func putBatches(_ plan: Plan, of count: Int) -> Int {
    plan.withRaw { raw_put_batches(database, $0, count) }
    return plan.order.count
  }

  func putSynced(_ plan: Plan, threads: Int) -> Int {
    plan.withRaw { raw_put_synced(database, $0, threads) }
    return plan.order.count / threads * threads
  }

  func getEach(_ plan: Plan) -> Int { plan.withRaw { raw_get_each(database, $0) } }

  func missEach(_ plan: Plan) -> Int { plan.withRaw { raw_miss_each(database, $0) } }

  func scan(_ plan: Plan) -> Int { plan.withRaw { raw_scan(database, $0) } }

  /// Deletes the records expired at `now`, and the index rows from `first` up to `end`.
  func sweep(
    from first: [UInt8], to end: [UInt8], recordPrefix: [UInt8], now: Date, batchRows: Int
  ) -> Int {
    raw_sweep(
      database, first, end, first.count, recordPrefix, now.timeIntervalSinceReferenceDate,
      batchRows)
  }

  func close() { raw_close(database) }
}

extension Plan {
  /// Lends the plan as a C struct.
  func withRaw<R>(_ body: (UnsafePointer<raw_plan>) -> R) -> R {
    keys.withUnsafeBufferPointer { keys in
      pool.withUnsafeBufferPointer { pool in
        order.withUnsafeBufferPointer { order in
          guard let keys = keys.baseAddress, let pool = pool.baseAddress,
            let order = order.baseAddress
          else { preconditionFailure("the plan is empty") }
          var plan = raw_plan(
            keys: keys, key_bytes: keyBytes, pool: pool, value_span: valueSpan,
            value_bytes: valueBytes, order: order, count: self.order.count)
          return body(&plan)
        }
      }
    }
  }
}
