import CLarder
import Foundation
import Larder

/// LevelDB through the C functions that the engine calls, with the engine's options.
final class LevelDBSide: Side {
  private let database: OpaquePointer
  private let buffer: OpaquePointer

  /// Opens the database in a directory, or creates it.
  ///
  /// - Throws: ``WrongResults`` with LevelDB's message.
  init(at directory: URL) throws {
    let settings = LevelDBOptions()
    let path = directory.path(percentEncoded: false)
    var database: OpaquePointer?
    try "/dev/null".withCString { log in
      var options = clarder_options(
        create_if_missing: true, compression: settings.compression,
        reuse_logs: settings.reusesLogs, hold_compactions: false,
        filter_bits_per_key: Int32(settings.filterBitsPerKey),
        max_open_files: Int32(settings.maxOpenFiles), block_bytes: settings.blockBytes,
        write_buffer_bytes: settings.writeBufferBytes,
        block_cache_bytes: settings.blockCacheBytes, max_file_bytes: settings.maxFileBytes,
        info_log_path: log, env: nil)
      try check(clarder_open(path, &options, &database))
    }
    guard let database else { throw WrongResults(description: "LevelDB did not open \(path)") }
    self.database = database
    buffer = clarder_buffer_create()
  }

  /// Closes the database; must be the last call.
  func close() {
    clarder_buffer_free(buffer)
    clarder_close(database)
  }

  /// Lends the value under `key` to `body`; returns nil if the key is missing.
  ///
  /// - Throws: ``WrongResults`` with LevelDB's message.
  func get<R>(_ key: RawSpan, _ body: (RawSpan) -> R) throws -> R? {
    var isFound = false
    try key.withUnsafeBytes { key in
      try check(clarder_get(database, clarder_slice(borrowing: key), buffer, &isFound))
    }
    guard isFound else { return nil }
    let value = clarder_buffer_slice(buffer)
    return body(UnsafeRawBufferPointer(start: value.bytes, count: value.count).bytes)
  }

  func putEach(_ plan: Plan) throws -> Int {
    for record in plan.order {
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
      try check(clarder_commit(database, false, nil))
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
