#if Encryption
  import Crypto
  import Foundation
  import Synchronization

  /// Seals the payloads and validators of a store, and opens them.
  ///
  /// AES-GCM with random nonces allows 2^32 messages for one key (NIST SP 800-38D, 8.3). So a data
  /// key is replaced after ``messageLimit`` of them, far below. They are counted in blocks: a row
  /// says how many may have been sealed, and is written before the first of a block is. A process
  /// that ends loses the rest of its block.
  final class StoreSeal: Sendable {
    static let messageLimit: UInt64 = 1 << 28
    static let block: UInt64 = 1 << 14

    private struct State {
      var dataKeys: DataKeys
      /// The data key that seals, and the messages that it has sealed, and those that are reserved.
      var current: UInt32?
      var sealed: UInt64 = 0
      var reserved: UInt64 = 0
      /// What batches hold whose records the current data key seals.
      var use = KeyUse()
      /// The uses of earlier ones that may not have ended, by their ids.
      var earlierUses: [(id: UInt32, use: EndingUse)] = []
    }

    /// Lives as long as a batch that a data key may have sealed records of.
    final class KeyUse: Sendable {}

    private struct EndingUse {
      weak var use: KeyUse?
    }

    private let state: Lock<State>
    /// All data keys, also deleted ones, by their ids; with a lock of its own, because a write
    /// under the other one must not keep reads waiting.
    private let opened: Lock<[UInt32: SymmetricKey]>
    private let engine: any StorageEngine
    let encryption: Encryption
    private let allSealed: Atomic<Bool>
    /// Whether every payload and validator of the store is sealed: one that is not is an error.
    var isAllSealed: Bool { allSealed.load(ordering: .relaxed) }

    private init(
      _ state: State, _ opened: [UInt32: SymmetricKey], _ engine: any StorageEngine,
      _ encryption: Encryption
    ) {
      allSealed = Atomic((state.dataKeys.last?.coverage ?? .some) != .some)
      self.state = Lock(state)
      self.opened = Lock(opened)
      (self.engine, self.encryption) = (engine, encryption)
    }

    /// The seal of a store; nil if it has none, and none is asked for.
    ///
    /// Makes a store sealed that is not, unless it is opened for reading only, and seals its data
    /// keys again if the user's key was replaced.
    ///
    /// - Throws: ``StoreError/wrongKey(found:given:)`` without the key of the store: nothing was
    ///   changed. ``StoreError/corrupt(cache:key:file:)`` if a data key is lost; the errors of
    ///   writes.
    static func ofStore(
      in engine: any StorageEngine, _ options: Store.Options
    ) throws(StoreError) -> StoreSeal? {
      guard !options.leavesSealed else { return nil }
      var dataKeys = try DataKeys(of: engine)
      guard let encryption = options.encryption else {
        guard let key = dataKeys.last else { return nil }
        throw .wrongKey(found: key.keyID, given: nil)
      }
      var opened: [SymmetricKey] = []
      for key in dataKeys.keys { opened.append(try key.open(by: encryption)) }
      if options.access == .readWrite {
        if dataKeys.keys.isEmpty {
          let new = SymmetricKey(size: .bits256)
          let records = EngineRange(prefix: [KeySpace.records.rawValue])
          let isEmpty = try !engine.headCursor(over: records).next()
          dataKeys.add(
            try SealedDataKey(new, id: 1, isEmpty ? .allByThisKey : .some, by: encryption))
          opened.append(new)
          try dataKeys.write(to: engine)
        } else if dataKeys.keys.contains(where: { $0.keyID != encryption.keyID }) {
          try dataKeys.seal(opened, by: encryption)
          try dataKeys.write(to: engine)
        } else if !dataKeys.areInFile {
          do throws(StoreError) {
            try dataKeys.write(to: engine)
          } catch {
            // The disk may be full, and an opening must not need room. The next one tries again.
          }
        }
      }
      var state = State(dataKeys: dataKeys, current: dataKeys.last?.id)
      if let id = state.current {
        state.sealed = try reserved(of: id, in: engine)
        state.reserved = state.sealed
      }
      let byID = Dictionary(zip(dataKeys.keys.map(\.id), opened)) { $1 }
      return StoreSeal(state, byID, engine, encryption)
    }

    /// The id of the user's key that seals a store; nil if it is not sealed.
    static func keyID(of engine: any StorageEngine) throws(StoreError) -> String? {
      try DataKeys(of: engine).last?.keyID
    }

    /// The messages that a data key may have sealed; all that are allowed if that is unknown.
    private static func reserved(
      of id: UInt32, in engine: any StorageEngine
    ) throws(StoreError) -> UInt64 {
      let key = Metadata.sealedCount(id)
      guard let value = try engine.get(key.span.bytes) else { return 0 }
      return Metadata.number(in: value, under: key) ?? messageLimit
    }

    private func key(_ id: UInt32) -> SymmetricKey? { opened.withLock { $0[id] } }

    /// Whether a field is sealed with this data key or a later one.
    static func isSealed(_ field: RawSpan, since id: UInt32) -> Bool {
      dataKeyID(of: field).map { $0 >= id } ?? false
    }

    /// The data key that has sealed a field; nil if it is too short for one.
    private static func dataKeyID(of field: RawSpan) -> UInt32? {
      guard field.byteCount >= SealedField.overhead else { return nil }
      return UInt32(littleEndian: field.unsafeLoadUnaligned(fromByteOffset: 0, as: UInt32.self))
    }
  }

  // MARK: - Sealing

  extension StoreSeal {
    /// Seals the bytes of `buffer` from `start` on, which become a sealed field.
    ///
    /// - Throws: The errors of a write: once in ``block`` messages a row is written.
    func seal(
      _ buffer: inout ByteBuffer, from start: Int, _ place: SealedPlace
    ) throws(StoreError) {
      let (id, key) = try takeMessage()
      let sealed = try buffer.withBytes { bytes throws(StoreError) in
        try Self.seal(UnsafeRawBufferPointer(rebasing: bytes[start...]), by: key, place)
      }
      buffer.truncate(to: start)
      buffer.append(littleEndian: id)
      sealed.withUnsafeBytes { buffer.append($0) }
    }

    /// A validator as a sealed field.
    func seal(_ validator: Validator, _ place: SealedPlace) throws(StoreError) -> Validator {
      var buffer = ByteBuffer()
      buffer.append(validator.bytes)
      try seal(&buffer, from: 0, place)
      return Validator(Array(buffer))
    }

    private static func seal(
      _ bytes: UnsafeRawBufferPointer, by key: SymmetricKey, _ place: SealedPlace
    ) throws(StoreError) -> Data {
      do {
        let box = try AES.GCM.seal(bytes, using: key, authenticating: place.bytes)
        if let sealed = box.combined { return sealed }
      } catch {
        throw .io("a value cannot be sealed: \(error)")
      }
      throw .io("a value cannot be sealed")
    }

    /// The data key for another message.
    private func takeMessage() throws(StoreError) -> (UInt32, SymmetricKey) {
      try state.withLock { state throws(StoreError) in
        if state.sealed == state.reserved { try reserve(&state) }
        guard let id = state.current, let key = key(id) else {
          throw .readOnly(cause: "it was opened for reading only")
        }
        state.sealed += 1
        return (id, key)
      }
    }

    /// Reserves messages of the current data key, or of a new one if it has sealed enough.
    private func reserve(_ state: inout State) throws(StoreError) {
      if state.reserved >= Self.messageLimit { try addDataKey(&state) }
      guard let id = state.current else { return }
      var rows = WriteBatch()
      rows.putMetadata(state.reserved + Self.block, under: Metadata.sealedCount(id))
      try engine.write(&rows, synced: false)
      state.reserved += Self.block
    }
  }

  // MARK: - Sealing everything again

  extension StoreSeal {
    /// Begins to seal with a new data key, unless a part of the store is not sealed with the one
    /// before.
    ///
    /// - Returns: The id of the key with which everything is to be sealed; nil if there is no key,
    ///   because the store is read-only.
    func beginResealing() throws(StoreError) -> UInt32? {
      try state.withLock { state throws(StoreError) in
        if state.dataKeys.last?.coverage == .allByThisKey { try addDataKey(&state) }
        return state.current
      }
    }

    /// Notes that every value of the store is sealed with a data key or later ones, and deletes the
    /// earlier ones.
    ///
    /// They stay in memory: a cursor may still read what was there when it was opened.
    func finishResealing(with id: UInt32) throws(StoreError) {
      try state.withLock { state throws(StoreError) in
        guard let current = state.current, let key = key(current) else { return }
        var dataKeys = state.dataKeys
        dataKeys.replaceLast(
          try SealedDataKey(
            key, id: current, current == id ? .allByThisKey : .all, by: encryption))
        dataKeys.remove(before: id)
        try dataKeys.write(to: engine)
        state.dataKeys = dataKeys
      }
      allSealed.store(true, ordering: .relaxed)
    }

    /// What a batch holds while records of it are sealed and until it is committed.
    ///
    /// It is taken before the first of them is sealed.
    var use: KeyUse { state.withLock { $0.use } }

    /// Whether a batch that is not committed yet may have records of an earlier data key.
    func isUsed(before id: UInt32) -> Bool {
      state.withLock { state in
        state.earlierUses.removeAll { $0.use.use == nil }
        return state.earlierUses.contains { $0.id < id }
      }
    }

    /// Makes a new data key the current one.
    private func addDataKey(_ state: inout State) throws(StoreError) {
      guard let id = state.current else { return }
      let new = SymmetricKey(size: .bits256)
      var dataKeys = state.dataKeys
      dataKeys.add(
        try SealedDataKey(new, id: id + 1, isAllSealed ? .all : .some, by: encryption))
      try dataKeys.write(to: engine)
      state.dataKeys = dataKeys
      opened.withLock { $0[id + 1] = new }
      (state.current, state.sealed, state.reserved) = (id + 1, 0, 0)
      state.earlierUses.append((id, EndingUse(use: state.use)))
      state.use = KeyUse()
    }
  }

  // MARK: - Opening

  extension StoreSeal {
    /// What was sealed in a field.
    ///
    /// - Throws: ``UnreadablePayload/seal`` if the field was sealed for another place, or was
    ///   changed since; ``UnreadablePayload/dataKey(_:)`` if its data key is lost.
    func open(_ field: RawSpan, _ place: SealedPlace) throws(UnreadablePayload) -> Data {
      guard let id = Self.dataKeyID(of: field) else { throw .seal }
      guard let key = key(id) else { throw .dataKey(id) }
      do {
        return try field.extracting(SealedField.idBytes...).withUnsafeBytes { bytes in
          let box = try AES.GCM.SealedBox(combined: bytes)
          return try AES.GCM.open(box, using: key, authenticating: place.bytes)
        }
      } catch {
        throw .seal
      }
    }
  }
#endif
