public import Larder

extension Cache {
  /// Damages the entry of a key: changes a byte of what is stored, without its checksum.
  ///
  /// ```swift
  /// try notes.damageEntry(for: "a")
  /// #expect(throws: StoreError.self) { try notes.value(for: "a") }
  /// ```
  ///
  /// Reading the entry then throws ``/Larder/StoreError/corrupt(cache:key:file:)``. As for any
  /// damaged entry, that ends when the key is saved or removed, or `validate` runs. Other entries
  /// stay readable. Damaging a damaged entry changes nothing, and observers are not notified.
  ///
  /// It works in any store. With ``StoreFaults``, it also succeeds while writes fail or are held.
  ///
  /// - Parameter key: The key of an entry, in any state.
  /// - Throws: ``/Larder/StoreError/invalidArgument(_:)`` if the key has no entry or is over its
  ///   limit, or if the cache was dropped. ``/Larder/StoreError/io(_:)``,
  ///   ``/Larder/StoreError/diskFull``, ``/Larder/StoreError/closed``.
  public func damageEntry(for key: Key) throws {
    let recordKey = try recordKey(of: key).bytes
    let engine = (store.engine as? FaultyEngine)?.base ?? store.engine
    do throws(StoreError) {
      while let record = try engine.get(recordKey.span.bytes) {
        if try damage(record, under: recordKey, in: engine) { return }
      }
    } catch {
      throw error.naming(cache: name)
    }
    throw StoreError.invalidArgument("cache \"\(name)\" has no entry to damage under this key")
  }

  /// Damages a record; returns false if it was changed meanwhile.
  private func damage(
    _ record: [UInt8], under key: [UInt8], in engine: any StorageEngine
  ) throws(StoreError) -> Bool {
    let stamp = Record.stamp
    guard stamp.isIntact(record.span.bytes, key: key.span.bytes),
      let sequence = stamp.sequence(of: record.span.bytes)
    else { return true }
    var damaged = record
    damaged[damaged.count - 1] ^= 0xFF
    var batch = WriteBatch()
    let same = batch.require(key.span.bytes, .unchanged(since: sequence, in: stamp))
    batch.put(key.span.bytes, if: same, note: CommittedChange.sameValue) { bytes in
      bytes.append(damaged.span.bytes)
    }
    return try engine.write(&batch, synced: false).failed.isEmpty
  }
}
