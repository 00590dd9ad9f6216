import Foundation
import GRDB
import Peers

/// A store of another maker, as a cache would use it: payloads under numbers, which may expire.
///
/// What was put survives a crash of the process, and need not survive a power loss, as with a save
/// of Larder. It is closed when the last reference goes.
protocol Peer: AnyObject {
  /// Puts a record, by itself unless this is called within ``together(_:)``.
  func put(_ key: Int, _ value: RawSpan, expires: Double?) throws
  /// Makes one write of what `body` puts.
  func together(_ body: () throws -> Void) throws
  /// Whether there is a record, and `body` says yes to its payload.
  func get(_ key: Int, _ body: (RawSpan) throws -> Bool) throws -> Bool
  /// Deletes what expires at `now` or earlier, and returns how many records that were.
  func sweep(at now: Double) throws -> Int
}

/// What there is to be measured against.
struct PeerKind: Sendable {
  let name: String
  /// How many records are enough, if making one takes long.
  var mostRecords = Int.max
  /// How many operations of a run are enough then.
  var mostOperations = Int.max
  /// How many rounds of saves are enough, where they take long, and then by far.
  var saveRounds = Int.max
  /// Opens the store in a directory that is there.
  let open: @Sendable (URL) throws -> any Peer

  static let sqlite = PeerKind(name: "SQLite", saveRounds: 3) { try SQLitePeer(in: $0) }
  static let lmdb = PeerKind(name: "LMDB") { KeyValuePeer(peer_kind_lmdb, in: $0) }
  static let rocksdb = PeerKind(name: "RocksDB") { KeyValuePeer(peer_kind_rocksdb, in: $0) }
  static let leveldb = PeerKind(name: "LevelDB") { KeyValuePeer(peer_kind_leveldb, in: $0) }
  static let databases = [sqlite, lmdb, rocksdb, leveldb]
  static let files = PeerKind(
    name: "files", mostRecords: 10_000, mostOperations: 1000, saveRounds: 3
  ) { FilePeer(in: $0) }
}

/// LMDB, RocksDB or LevelDB, by `Sources/Peers`.
private final class KeyValuePeer: Peer {
  private let store: OpaquePointer

  init(_ kind: peer_kind, in directory: URL) {
    store = peer_open(kind, directory.path(percentEncoded: false), RawSide.options)
  }

  deinit { peer_close(store) }

  func put(_ key: Int, _ value: RawSpan, expires: Double?) {
    value.withUnsafeBytes {
      peer_put(store, Int64(key), $0.baseAddress, $0.count, expires ?? .infinity)
    }
  }

  func together(_ body: () throws -> Void) throws {
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

/// SQLite through GRDB: its write-ahead log, not synced at each commit, and statements that are
/// prepared once.
private final class SQLitePeer: Peer {
  private let queue: DatabaseQueue
  /// The transaction that puts belong to, while there is one.
  private var transaction: Database?

  init(in directory: URL) throws {
    var configuration = Configuration()
    // With this GRDB sets `synchronous` to `NORMAL`, too.
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
        // One statement is a transaction, and needs none around it.
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

  func together(_ body: () throws -> Void) throws {
    try queue.write { database in
      transaction = database
      defer { transaction = nil }
      try body()
    }
  }

  func get(_ key: Int, _ body: (RawSpan) throws -> Bool) throws -> Bool {
    // One statement needs no transaction here either.
    try queue.unsafeRead { database in
      let statement = try database.cachedStatement(sql: "SELECT value FROM records WHERE key = ?")
      let rows = try Row.fetchCursor(statement, arguments: [key])
      // The row is valid as long as its cursor is.
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

/// A file for each record, which `Data` writes and reads.
///
/// Its date of modification says when it expires; a put gives it one of its own only when that is
/// in the past.
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

  func together(_ body: () throws -> Void) throws { try body() }

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
      guard unlink(path) == 0 else { throw WrongResults(description: "\(path) cannot be deleted") }
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

/// Lends the bytes as a `Data` that copies nothing.
func withData<R>(_ bytes: RawSpan, _ body: (Data) throws -> R) throws -> R {
  try bytes.withUnsafeBytes { bytes in
    guard let start = bytes.baseAddress else { return try body(Data()) }
    return try body(
      Data(
        bytesNoCopy: UnsafeMutableRawPointer(mutating: start), count: bytes.count,
        deallocator: .none))
  }
}
