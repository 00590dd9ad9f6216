import Synchronization

/// The ids that caches had until the database was reopened.
///
/// A clear or a drop whose write had failed took effect then. A thread that had read such an id
/// before may write records under it afterwards, which are in no cache.
final class EndedIDs: Sendable {
  private let ids = Lock<Set<UInt64>>([])
  private let count = Atomic<Int>(0)
  private let currentTicket = Lock(WriteTicket())

  /// The right to write the registration of a cache, which the caller reads afterwards.
  ///
  /// It is revoked when the database is reopened after a failure: the registration may then have
  /// another id, or be gone.
  var ticket: WriteTicket { currentTicket.withLock { $0 } }

  /// Revokes the ticket.
  func reopened() {
    let last = currentTicket.withLock { ticket in
      defer { ticket = WriteTicket() }
      return ticket
    }
    last.revoke()
  }

  func insert(_ id: UInt64) {
    ids.withLock { ids in
      ids.insert(id)
      count.store(ids.count, ordering: .releasing)
    }
  }

  /// Throws if a batch that was written has records under such an id.
  @inline(__always)
  func check(_ write: borrowing WriteBatch) throws(StoreError) {
    if count.load(ordering: .acquiring) > 0 { try checkRows(of: write) }
  }

  private func checkRows(of write: borrowing WriteBatch) throws(StoreError) {
    let ids = ids.withLock { $0 }
    let isEnded = write.bytes.withBytes { bytes in
      write.rows.contains { row in
        row.recordCacheID(in: bytes).map { ids.contains($0) } ?? false
      }
    }
    guard isEnded else { return }
    throw .writesDisabled(
      cause: "while the entry was saved, a failed clear or drop of its cache took effect")
  }
}

extension StoreContext {
  /// Writes rows with the registration of a cache, which was read after `ticket`.
  ///
  /// - Returns: False, and nothing was written, if the ticket was revoked.
  func writeRegistration(
    _ rows: inout WriteBatch, of cache: String, synced: Bool = false, with ticket: WriteTicket
  ) throws(StoreError) -> Bool {
    _ = rows.require(Metadata.cache(cache), .valid(ticket))
    rows.isWhole = true
    return try writeMetadata(&rows, synced: synced, cache: cache).failed.isEmpty
  }
}
