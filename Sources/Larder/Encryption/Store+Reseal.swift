#if Encryption
  import Foundation

  /// The result of ``Store/reseal()``.
  public struct ResealReport: Sendable, Hashable {
    /// Entries that were sealed, for the first time or again.
    public var sealed = 0
    /// Entries that were sealed with the newest data key already.
    public var current = 0
    /// Entries that were left because their bytes are damaged, could not be opened, or are of a
    /// later version.
    public var unreadable = 0
    /// Whether every entry of the store is sealed with the newest data key, and the earlier ones
    /// are deleted.
    ///
    /// False if there is an unreadable entry, or if a batch that was begun before this call is not
    /// committed yet. The next call does the rest.
    public var isComplete = false

    init() {}
  }

  extension Store {
    /// Seals every entry of the store with a new data key.
    ///
    /// ```swift
    /// try store.reseal()           // seals what was saved before the store had a key
    /// try await store.compact()    // and removes the bytes of before from the files
    /// ```
    ///
    /// Entries keep their dates and tags. The store can be used while this runs, and an entry that
    /// is saved or removed meanwhile is never overwritten. If this is interrupted, by an error or
    /// the end of the process, every entry is still readable, and the next call seals the rest.
    ///
    /// Once every entry is sealed, the data keys of before are deleted.
    ///
    /// The bytes of before stay in the files until LevelDB and the segments are compacted, and in
    /// backups, snapshots and free blocks of the disk for longer.
    ///
    /// - Returns: The numbers of entries that were sealed and left.
    /// - Throws: ``StoreError/invalidArgument(_:)`` if the store has no
    ///   ``Options/encryption``; ``StoreError/corrupt(cache:key:file:)`` after everything readable
    ///   was sealed, if a part of a file or what is known of a cache could not be read;
    ///   ``StoreError/incompatible(_:)`` in the same way, if a later version has registered a
    ///   cache; ``StoreError/diskFull``,
    ///   ``StoreError/io(_:)`` or ``StoreError/writesDisabled(cause:)`` if a write failed: what was
    ///   sealed before is kept; ``StoreError/readOnly(cause:)``, ``StoreError/closed``.
    /// - Complexity: One scan of the store, two if a save was under way when it began; for each
    ///   entry that is sealed one opening, one sealing and one lookup; one append for up to 256 of
    ///   them or about 1 MiB. Memory for such a slice and the largest value.
    @discardableResult public func reseal() throws -> ResealReport {
      try requireWritable()
      try context.engine.checkOpen()
      guard let seal = context.seal, let target = try seal.beginResealing() else {
        throw StoreError.invalidArgument("the store has no key to seal with")
      }
      var resealing = Resealing(with: target, seal, context)
      // A save that was under way may have been committed behind the scan.
      repeat {
        resealing.isAfterSaves = !seal.isUsed(before: target)
        try resealing.scan(self)
      } while !resealing.isAfterSaves && !seal.isUsed(before: target)
      if let error = resealing.error { throw error }
      if resealing.report.unreadable == 0, resealing.isAfterSaves {
        try seal.finishResealing(with: target)
        resealing.report.isComplete = true
      }
      return resealing.report
    }
  }

  /// One call of ``Store/reseal()``.
  private struct Resealing: ~Copyable {
    private let seal: StoreSeal
    private let context: StoreContext
    /// The data key with which, or with later ones, all entries are to be sealed.
    private let target: UInt32
    var report = ResealReport()
    /// Whether this is the first scan.
    ///
    /// A second one finds what the first has sealed.
    private var isFirst = true
    /// What kept a part of the store from being read.
    private(set) var error: StoreError?
    /// Whether the scan began after the last commit of what an earlier data key has sealed.
    var isAfterSaves = false

    init(with target: UInt32, _ seal: StoreSeal, _ context: StoreContext) {
      (self.target, self.seal, self.context) = (target, seal, context)
    }

    /// Seals the entries of all caches.
    mutating func scan(_ store: Store) throws(StoreError) {
      (report.unreadable, error) = (0, nil)
      defer { isFirst = false }
      let names = try store.withRegistry { registry throws(StoreError) in
        try registry.registeredNames()
      }
      for name in names {
        let id: UInt64?
        do throws(StoreError) {
          id = try store.withRegistry { registry throws(StoreError) in
            try registry.registration(of: name)?.id
          }
        } catch {
          switch error {
          case .corrupt, .incompatible: self.error = self.error ?? error
          default: throw error
          }
          continue
        }
        if let id { try run(id, name) }
      }
    }

    /// Seals the entries of a cache.
    private mutating func run(_ id: UInt64, _ name: String) throws(StoreError) {
      var pass = try RecordPass(
        over: EngineRange(prefix: KeySpace.records.prefix(ofCache: id)), ofCache: name,
        readsPayloads: true, freesRoom: false, in: context)
      while try pass.next() {
        try pass.visit { key, bytes, _, changes throws(StoreError) in
          try reseal(bytes, under: key, in: name, &changes)
        }
        if pass.isFull { try commit(&pass, name) }
      }
      try commit(&pass, name)
      error = error ?? pass.damage
    }

    private mutating func commit(_ pass: inout RecordPass, _ name: String) throws(StoreError) {
      while pass.hasChanges {
        let changed = try pass.commitOnce { _ in report.sealed += 1 }
        try pass.visit(changed) { key, bytes, _, changes throws(StoreError) in
          try reseal(bytes, under: key, in: name, &changes)
        }
      }
    }

    private mutating func reseal(
      _ recordBytes: RawSpan, under key: RawSpan, in name: String, _ changes: inout RecordChanges
    ) throws(StoreError) {
      let record: Record
      var payload = ByteBuffer()
      var validator: Validator?
      do {
        record = try Record(recordBytes, under: key)
        if isSealed(record, recordBytes) {
          if isFirst { report.current += 1 }
          return
        }
        validator = Validator(of: record, in: recordBytes)
        if let field = validator, record.isValidatorSealed {
          validator = try seal.validator(in: field.bytes.span.bytes, under: key, in: name)
        }
        if record.isSealed {
          let opened = try seal.payload(of: record, in: recordBytes, under: key, in: name)
          opened.withUnsafeBytes { payload.append($0) }
        } else {
          payload.append(recordBytes.extracting(record.payload))
        }
      } catch {
        report.unreadable += 1
        return
      }
      let keyBytes = [UInt8](key)
      try changes.add(
        RecordChanges.Change(
          key: keyBytes, bytes: keyBytes.count + recordBytes.byteCount, cause: nil),
        if: .unchanged(since: record.sequence, in: Record.stamp)
      ) { [seal] write, requirement throws(StoreError) in
        write.hold(seal)
        if let plain = validator {
          validator = try seal.seal(plain, SealedPlace(ofValidatorUnder: key, in: name))
        }
        try write.putSeparable(
          key, stamp: Record.stamp, if: requirement, note: CommittedChange.sameValue
        ) { buffer throws(StoreError) -> Int in
          let start = buffer.count
          payload.withBytes {
            record.appendOpened(recordBytes, payload: $0.bytes, validator: validator, to: &buffer)
          }
          let place = buffer.count - payload.count
          try seal.sealPayload(
            of: &buffer, from: start, payload: place, under: key, in: name)
          return buffer.count - place
        }
      }
    }

    /// Whether the payload, and the validator if there is one, are sealed with the target.
    private func isSealed(_ record: Record, _ bytes: RawSpan) -> Bool {
      guard record.isSealed,
        StoreSeal.isSealed(bytes.extracting(record.payload), since: target)
      else { return false }
      guard let validator = record.validator else { return true }
      return record.isValidatorSealed
        && StoreSeal.isSealed(bytes.extracting(validator), since: target)
    }
  }
#endif
