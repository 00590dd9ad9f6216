import Foundation
import GRDB
import Peers

/// Another store, used as a cache: payloads under numbers, with optional expiry dates.
///
/// A put survives a crash of the process, but not necessarily a power loss, like a save of Larder.
/// The store is closed with its last reference.
protocol Peer: AnyObject {
  /// Puts a record, in its own write unless called within ``batch(_:)``.
  func put(_ key: Int, _ value: RawSpan, expires: Double?) throws
  /// Combines the puts of `body` into one write.
  func batch(_ body: () throws -> Void) throws
  /// Whether a record exists and `body` returns true for its payload.
  func get(_ key: Int, _ body: (RawSpan) throws -> Bool) throws -> Bool
  /// Deletes the records that expire at `now` or earlier, and returns their number.
  func sweep(at now: Double) throws -> Int
}

/// A kind of store to compare with.
struct PeerKind: Sendable {
  let name: String
  /// The maximum number of records, if creating one takes long.
  var mostRecords = Int.max
  /// The maximum number of operations per run.
  var mostOperations = Int.max
  /// The maximum number of rounds of saves, if they take long.
  var saveRounds = Int.max
  /// Opens the store in an existing directory.
  let open: @Sendable (URL) throws -> any Peer

  static let sqlite = PeerKind(name: "SQLite", saveRounds: 3) { try SQLitePeer(in: $0) }
  static let lmdb = PeerKind(name: "LMDB") { KeyValuePeer(peer_kind_lmdb, in: $0) }
  static let rocksdb = PeerKind(name: "RocksDB") { KeyValuePeer(peer_kind_rocksdb, in: $0) }
  static let leveldb = PeerKind(name: "LevelDB") { KeyValuePeer(peer_kind_leveldb, in: $0) }
  /// With buffers and files of 64 MB, as for a server.
  static let tunedLevelDB = PeerKind(name: "LevelDB, 64 MB buffers") {
    KeyValuePeer(peer_kind_leveldb, in: $0, RawSide.options.withBuffers(of: 64 << 20))
  }
  /// RocksDB with values from 4 KiB on in blob files, which are collected.
  static let blobDB = PeerKind(name: "RocksDB BlobDB") { KeyValuePeer(peer_kind_blobdb, in: $0) }
  static let databases = [sqlite, lmdb, rocksdb, leveldb]
  static let files = PeerKind(
    name: "files", mostRecords: 10_000, mostOperations: 1000, saveRounds: 3
  ) { FilePeer(in: $0) }

  /// The same kind, with any number of records.
  var unlimited: PeerKind { PeerKind(name: name, open: open) }
}

extension raw_options {
  fileprivate func withBuffers(of bytes: Int) -> raw_options {
    var options = self
    options.write_buffer_bytes = bytes
    options.max_file_bytes = bytes
    return options
  }
}

/// LMDB, RocksDB or LevelDB, through `Sources/Peers`.
private final class KeyValuePeer: Peer {
  private let store: OpaquePointer

  init(_ kind: peer_kind, in directory: URL, _ options: raw_options = RawSide.options) {
    store = peer_open(kind, directory.path(percentEncoded: false), options)
  }

  deinit { peer_close(store) }

  func put(_ key: Int, _ value: RawSpan, expires: Double?) {
    value.withUnsafeBytes {
      peer_put(store, Int64(key), $0.baseAddress, $0.count, expires ?? .infinity)
    }
  }

  func batch(_ body: () throws -> Void) throws {
    peer_begin(store)
    try body()
    peer_commit(store)
  }

  func get(_ key: Int, _ body: (RawSpan) throws -> Bool) throws -> Bool {
    var count = 0
    guard let bytes = peer_get(store, Int64(key), &count) else { return false }
    return try body(UnsafeRawBufferPointer(start: bytes, count: count).bytes)
  }

  func sweep(at now: Double) -> Int { peer_sweep(store, now) }
}

/// SQLite through GRDB, with a write-ahead log that commits do not sync, and prepared statements.
private final class SQLitePeer: Peer {
  private let queue: DatabaseQueue
  /// The current transaction, within `batch`.
  private var transaction: Database?

  init(in directory: URL) throws {
    var configuration = Configuration()
    // This also makes GRDB set `synchronous` to `NORMAL`.
    configuration.journalMode = .wal
    queue = try DatabaseQueue(
      path: directory.appending(path: "records.sqlite").path(percentEncoded: false),
      configuration: configuration)
    try queue.write { database in
      try database.execute(
        sql: """
          CREATE TABLE IF NOT EXISTS records (key INTEGER PRIMARY KEY, expires REAL, value BLOB);
          CREATE INDEX IF NOT EXISTS expiry ON records (expires) WHERE expires IS NOT NULL;
          """)
    }
  }

  func put(_ key: Int, _ value: RawSpan, expires: Double?) throws {
    try withData(value) { data in
      if let transaction {
        try put(key, data, expires, in: transaction)
      } else {
        // A single statement needs no explicit transaction.
        try queue.writeWithoutTransaction { try put(key, data, expires, in: $0) }
      }
    }
  }

  private func put(
    _ key: Int, _ value: Data, _ expires: Double?, in database: Database
  ) throws {
    try database.cachedStatement(
      sql: "INSERT OR REPLACE INTO records (key, expires, value) VALUES (?, ?, ?)"
    ).execute(arguments: [key, expires, value])
  }

  func batch(_ body: () throws -> Void) throws {
    try queue.write { database in
      transaction = database
      defer { transaction = nil }
      try body()
    }
  }

  func get(_ key: Int, _ body: (RawSpan) throws -> Bool) throws -> Bool {
    // A single statement needs no explicit transaction here either.
    try queue.unsafeRead { database in
      let statement = try database.cachedStatement(sql: "SELECT value FROM records WHERE key = ?")
      let rows = try Row.fetchCursor(statement, arguments: [key])
      // The row is valid as long as its cursor.
      return try withExtendedLifetime(rows) {
        try rows.next()?.withUnsafeData(atIndex: 0) { data in
          guard let data else { return false }
          return try body(data.span.bytes)
        } ?? false
      }
    }
  }

  func sweep(at now: Double) throws -> Int {
    try queue.write { database in
      try database.execute(sql: "DELETE FROM records WHERE expires <= ?", arguments: [now])
      return database.changesCount
    }
  }
}

/// One file per record, written and read by `Data`.
///
/// The modification date determines when a record expires; a put sets it only for records that have
/// already expired.
private final class FilePeer: Peer {
  private static let lifetime = PeerSuite.lifetime
  private let directory: URL

  init(in directory: URL) { self.directory = directory }

  private func file(_ key: Int) -> URL { directory.appending(path: String(key)) }

  func put(_ key: Int, _ value: RawSpan, expires: Double?) throws {
    let file = file(key)
    try withData(value) { try $0.write(to: file) }
    guard let expires, expires < PeerSuite.now else { return }
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceReferenceDate: expires - Self.lifetime)],
      ofItemAtPath: file.path(percentEncoded: false))
  }

  func batch(_ body: () throws -> Void) throws { try body() }

  func get(_ key: Int, _ body: (RawSpan) throws -> Bool) throws -> Bool {
    let data: Data
    do {
      data = try Data(contentsOf: file(key))
    } catch CocoaError.fileReadNoSuchFile {
      return false
    }
    return try body(data.span.bytes)
  }

  func sweep(at now: Double) throws -> Int {
    let folder = directory.path(percentEncoded: false)
    let oldest = now - Self.lifetime + Date.timeIntervalBetween1970AndReferenceDate
    var deleted = 0
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
      var status = stat()
      let path = folder + "/" + name
      guard stat(path, &status) == 0, Self.seconds(of: status) <= oldest else { continue }
      guard unlink(path) == 0 else { throw WrongResults(description: "cannot delete \(path)") }
      deleted += 1
    }
    return deleted
  }

  private static func seconds(of status: stat) -> Double {
    #if os(Linux)
      Double(status.st_mtim.tv_sec)
    #else
      Double(status.st_mtimespec.tv_sec)
    #endif
  }
}

/// Lends the bytes as a `Data`, without a copy.
func withData<R>(_ bytes: RawSpan, _ body: (Data) throws -> R) throws -> R {
  try bytes.withUnsafeBytes { bytes in
    guard let start = bytes.baseAddress else { return try body(Data()) }
    return try body(
      Data(
        bytesNoCopy: UnsafeMutableRawPointer(mutating: start), count: bytes.count,
        deallocator: .none))
  }
}
