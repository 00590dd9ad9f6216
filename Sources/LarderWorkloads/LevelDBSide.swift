import CLarderLevelDB
package import Foundation
import LarderEngine

/// LevelDB by the C functions that the engine calls, opened with the engine's options, and nothing
/// of the engine in between.
package final class LevelDBSide: Side {
  private let database: OpaquePointer
  private let buffer: OpaquePointer

  /// Opens the database in a directory, or makes it there.
  ///
  /// - Throws: ``WrongResults`` with LevelDB's message.
  package init(at directory: URL) throws {
    let settings = LevelDBOptions()
    let path = directory.path(percentEncoded: false)
    var database: OpaquePointer?
    try "/dev/null".withCString { log in
      var options = clarder_options(
        create_if_missing: true, compression: settings.compression,
        reuse_logs: settings.reusesLogs, filter_bits_per_key: Int32(settings.filterBitsPerKey),
        max_open_files: Int32(settings.maxOpenFiles), block_bytes: settings.blockBytes,
        write_buffer_bytes: settings.writeBufferBytes,
        block_cache_bytes: settings.blockCacheBytes, max_file_bytes: settings.maxFileBytes,
        info_log_path: log, env: nil)
      try check(clarder_open(path, &options, &database))
    }
    guard let database else { throw WrongResults(description: "\(path) was not opened") }
    self.database = database
    buffer = clarder_buffer_create()
  }

  /// Closes the database.
  ///
  /// It must be called once, and last.
  package func close() {
    clarder_buffer_free(buffer)
    clarder_close(database)
  }

  /// Lends the value under `key`; nil when there is none.
  ///
  /// - Throws: ``WrongResults`` with LevelDB's message.
  package func get<R>(_ key: RawSpan, _ body: (RawSpan) -> R) throws -> R? {
    var isFound = false
    try key.withUnsafeBytes { key in
      try check(clarder_get(database, clarder_slice(borrowing: key), buffer, &isFound))
    }
    guard isFound else { return nil }
    let value = clarder_buffer_slice(buffer)
    return body(UnsafeRawBufferPointer(start: value.bytes, count: value.count).bytes)
  }

  func putEach(_ plan: Plan) throws -> Int { try putBatches(plan, of: 1) }

  func putBatches(_ plan: Plan, of count: Int) throws -> Int {
    for (step, record) in plan.order.enumerated() {
      plan.withKey(record) { key in
        plan.withValue(record) { value in
          key.withUnsafeBytes { key in
            value.withUnsafeBytes { value in
              clarder_stage_put(
                database, clarder_slice(borrowing: key), clarder_slice(borrowing: value))
            }
          }
        }
      }
      guard (step + 1).isMultiple(of: count) || step + 1 == plan.order.count else { continue }
      try check(clarder_commit(database, false))
    }
    return plan.order.count
  }

  func getEach(_ plan: Plan) throws -> Int {
    var right = 0
    for record in plan.order {
      let isRight = try plan.withKey(record) { key in
        try get(key) { plan.matches($0, record) }
      }
      if isRight == true { right += 1 }
    }
    return right
  }

  func missEach(_ plan: Plan) throws -> Int {
    var missing = 0
    for record in plan.order {
      let found: Void? = try plan.withKey(record) { key in try get(key) { _ in } }
      if found == nil { missing += 1 }
    }
    return missing
  }

  func scan(_ plan: Plan) throws -> Int {
    let cursor = clarder_cursor_create(database)
    defer { clarder_cursor_free(cursor) }
    var right = 0
    var place = plan.withKey(plan.order[0]) { key in
      key.withUnsafeBytes { clarder_cursor_seek(cursor, clarder_slice(borrowing: $0)) }
    }
    for record in plan.order where place.is_entry {
      let key = UnsafeRawBufferPointer(start: place.key.bytes, count: place.key.count).bytes
      let value = UnsafeRawBufferPointer(start: place.value.bytes, count: place.value.count).bytes
      if plan.matches(key: key, record) && plan.matches(value, record) { right += 1 }
      place = clarder_cursor_next(cursor)
    }
    try check(clarder_cursor_status(cursor))
    return right
  }
}

private func check(_ status: OpaquePointer?) throws {
  guard let status else { return }
  defer { clarder_status_free(status) }
  throw WrongResults(description: String(cString: clarder_status_message(status)))
}

extension clarder_slice {
  fileprivate init(borrowing bytes: UnsafeRawBufferPointer) {
    self.init(bytes: bytes.baseAddress, count: bytes.count)
  }
}
