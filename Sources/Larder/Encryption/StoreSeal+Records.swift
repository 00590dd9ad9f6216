#if Encryption
  import Foundation

  extension WriteBatch {
    /// Keeps the data key that seals records of this batch from being deleted before it has ended.
    ///
    /// Called before the first of them is sealed.
    mutating func hold(_ seal: StoreSeal) {
      if heldKey == nil { heldKey = seal.use }
    }
  }

  extension StoreSeal {
    /// Seals the payload of the record that begins at `start`, which was compressed or not.
    ///
    /// - Parameters:
    ///   - buffer: A buffer that ends with the record.
    ///   - start: Where the record begins.
    ///   - payload: Where its payload begins.
    ///   - key: Its physical key.
    ///   - cache: The name of its cache.
    /// - Throws: As ``seal(_:from:_:)``.
    func sealPayload(
      of buffer: inout ByteBuffer, from start: Int, payload: Int, under key: RawSpan,
      in cache: String
    ) throws(StoreError) {
      typealias Offset = Record.Offset
      let place = buffer.withBytes { bytes in
        SealedPlace(
          ofPayload: bytes[start + Offset.coder],
          schemaVersion: UInt32(
            littleEndian: bytes.loadUnaligned(
              fromByteOffset: start + Offset.schemaVersion, as: UInt32.self)),
          isCompressed: bytes[start + Offset.flags] & Record.Flag.isCompressed != 0, under: key,
          in: cache)
      }
      try seal(&buffer, from: payload, place)
      buffer.withMutableBytes { $0[start + Offset.flags] |= Record.Flag.isSealed }
    }

    /// What was sealed as the payload of a record, which is `bytes`.
    ///
    /// - Parameters:
    ///   - record: A record with a sealed payload.
    ///   - bytes: Its bytes.
    ///   - key: Its physical key.
    ///   - cache: The name of its cache.
    /// - Returns: The payload as it was before it was sealed.
    /// - Throws: As ``open(_:_:)``.
    func payload(
      of record: Record, in bytes: RawSpan, under key: RawSpan, in cache: String
    ) throws(UnreadablePayload) -> Data {
      let place = SealedPlace(ofPayloadOf: record, under: key, in: cache)
      return try open(bytes.extracting(record.payload), place)
    }

    /// What was sealed as a validator.
    ///
    /// - Parameters:
    ///   - field: The sealed field.
    ///   - key: The physical key of its record.
    ///   - cache: The name of its cache.
    /// - Returns: The validator as it was before it was sealed.
    /// - Throws: As ``open(_:_:)``.
    func validator(
      in field: RawSpan, under key: RawSpan, in cache: String
    ) throws(UnreadablePayload) -> Validator {
      Validator([UInt8](try open(field, SealedPlace(ofValidatorUnder: key, in: cache))))
    }

    /// The fields of a record with a sealed validator, if they have one that is not sealed.
    func sealed(
      _ fields: Record.Fields, under key: RawSpan, in cache: String
    ) throws(StoreError) -> Record.Fields {
      guard let validator = fields.validator, !fields.isValidatorSealed else { return fields }
      var fields = fields
      fields.validator = try seal(validator, SealedPlace(ofValidatorUnder: key, in: cache))
      fields.isValidatorSealed = true
      return fields
    }
  }
#else
  /// Nothing is sealed without the package trait `Encryption`: there is no value of this type.
  enum StoreSeal: Sendable {
    static func ofStore(
      in engine: any StorageEngine, _ options: Store.Options
    ) throws(StoreError) -> StoreSeal? {
      nil
    }

    var isAllSealed: Bool {
      switch self {}
    }

    func sealPayload(
      of buffer: inout ByteBuffer, from start: Int, payload: Int, under key: RawSpan,
      in cache: String
    ) throws(StoreError) {
      switch self {}
    }

    func sealed(
      _ fields: Record.Fields, under key: RawSpan, in cache: String
    ) throws(StoreError) -> Record.Fields {
      switch self {}
    }

    func payload(
      of record: Record, in bytes: RawSpan, under key: RawSpan, in cache: String
    ) throws(UnreadablePayload) -> [UInt8] {
      switch self {}
    }

    func validator(
      in field: RawSpan, under key: RawSpan, in cache: String
    ) throws(UnreadablePayload) -> Validator {
      switch self {}
    }
  }

  extension WriteBatch {
    mutating func hold(_ seal: StoreSeal) {}
  }
#endif
