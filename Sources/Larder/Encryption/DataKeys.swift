#if Encryption
  import Crypto
  import Foundation

  /// A key that seals payloads, itself sealed with the user's key.
  ///
  /// A user's key seals few bytes, and so never wears out; and to change it, only these are sealed
  /// again.
  struct SealedDataKey: Codable, Hashable {
    let id: UInt32
    /// The id of the user's key.
    let keyID: String
    /// What was sealed when this key began to seal, or since.
    let coverage: Coverage
    /// Nonce, ciphertext and tag.
    let sealed: Data

    /// How much of a store is sealed.
    enum Coverage: Int, Codable {
      /// Some values may not be sealed.
      case some = 0
      /// All values are sealed, some of them perhaps with older data keys.
      case all = 1
      /// All values are sealed with this key.
      case allByThisKey = 2
    }

    private enum CodingKeys: String, CodingKey {
      case id, sealed, coverage
      case keyID = "key"
    }

    /// Seals a data key.
    init(
      _ dataKey: SymmetricKey, id: UInt32, _ coverage: Coverage, by encryption: Encryption
    ) throws(StoreError) {
      (self.id, self.coverage, keyID) = (id, coverage, encryption.keyID)
      do {
        let place = Self.place(of: id, coverage, keyID)
        let box = try dataKey.withUnsafeBytes {
          try AES.GCM.seal($0, using: encryption.key, authenticating: place)
        }
        guard let bytes = box.combined else {
          throw StoreError.io("a nonce has another size than 12 bytes")
        }
        sealed = bytes
      } catch {
        throw .io("a data key cannot be sealed: \(error)")
      }
    }

    /// What is authenticated beside the data key.
    private static func place(of id: UInt32, _ coverage: Coverage, _ keyID: String) -> [UInt8] {
      Array("larder data key".utf8) + withUnsafeBytes(of: id.littleEndian, Array.init)
        + [UInt8(coverage.rawValue)] + Array(keyID.utf8)
    }

    /// The data key.
    ///
    /// - Throws: ``StoreError/wrongKey(found:given:)`` if the user's key is not given, or is
    ///   another one.
    func open(by encryption: Encryption) throws(StoreError) -> SymmetricKey {
      guard let key = encryption.key(named: keyID) else {
        throw .wrongKey(found: keyID, given: encryption.keyID)
      }
      do {
        let box = try AES.GCM.SealedBox(combined: sealed)
        let place = Self.place(of: id, coverage, keyID)
        return SymmetricKey(data: try AES.GCM.open(box, using: key, authenticating: place))
      } catch {
        throw .wrongKey(found: keyID, given: keyID)
      }
    }
  }

  extension SealedDataKey {
    var json: [UInt8] {
      get throws(StoreError) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
          return [UInt8](try encoder.encode(self))
        } catch {
          throw .io("a data key cannot be encoded: \(error)")
        }
      }
    }

    /// Decodes a data key; nil if `json` is not the JSON of one.
    init?(json: some DataProtocol) {
      do {
        self = try JSONDecoder().decode(SealedDataKey.self, from: Data(json))
      } catch {
        return nil
      }
    }
  }

  /// The sealed data keys of a store.
  ///
  /// Each is a row of the metadata, and a file has a copy of all.
  struct DataKeys {
    /// By id, ascending.
    private(set) var keys: [SealedDataKey] = []
    /// Whether the file has the same keys.
    private(set) var areInFile = false
    /// The ids of keys whose rows are removed by the next write.
    private var unneeded: [UInt32] = []

    /// Reads the rows, and from the file what is damaged or missing among them.
    ///
    /// In a store that is damaged anyway, unreadable rows are missing ones, if there is a file.
    ///
    /// - Throws: ``StoreError/corrupt(cache:key:file:)`` if a row is damaged and the file lacks its
    ///   key, or if a store that is marked as sealed has no keys.
    init(of engine: any StorageEngine, isDamaged: Bool = false) throws(StoreError) {
      var inFile: [SealedDataKey] = []
      // The file is needed only if the rows are not enough.
      var fileError: StoreError?
      do throws(StoreError) {
        inFile = try engine.keptKeys().flatMap(Self.keys(inFile:)) ?? []
      } catch {
        fileError = error
      }
      var found = Dictionary(inFile.map { ($0.id, $0) }) { $1 }
      var rows: [SealedDataKey] = []
      let cursor = try engine.cursor(over: EngineRange(prefix: Metadata.dataKeyPrefix))
      func next() throws(StoreError) -> Bool {
        do throws(StoreError) {
          return try cursor.next()
        } catch {
          guard case .corrupt = error, isDamaged, !inFile.isEmpty else { throw error }
          return false
        }
      }
      while try next() {
        let (key, value) = cursor.withEntry { ([UInt8]($0), [UInt8]($1)) }
        guard let id = Metadata.dataKeyID(in: key.span.bytes) else { continue }
        if let row = Metadata.body(of: value, under: key).flatMap({ SealedDataKey(json: $0) }),
          row.id == id
        {
          rows.append(row)
          found[id] = row
        } else if found[id] == nil {
          throw fileError ?? .corrupt("metadata: the data key \(id)")
        }
      }
      keys = found.values.sorted { $0.id < $1.id }
      areInFile = keys == inFile && rows.count == keys.count
      if keys.isEmpty, try engine.isMarkedSealed() {
        throw fileError
          ?? .corrupt("the data keys, which are neither in the metadata nor in \(KeyFile.name)")
      }
    }

    /// The data key that seals.
    var last: SealedDataKey? { keys.last }

    mutating func replaceLast(_ key: SealedDataKey) {
      keys.removeLast()
      add(key)
    }

    mutating func add(_ key: SealedDataKey) {
      keys.append(key)
      areInFile = false
    }

    /// Removes the keys with smaller ids, which no value needs any more.
    mutating func remove(before id: UInt32) {
      unneeded += keys.map(\.id).filter { $0 < id }
      keys.removeAll { $0.id < id }
      areInFile = false
    }

    /// Seals all data keys, which are `opened` in the same order, with another key of the user.
    mutating func seal(_ opened: [SymmetricKey], by encryption: Encryption) throws(StoreError) {
      var sealed: [SealedDataKey] = []
      for (key, dataKey) in zip(keys, opened) {
        sealed.append(
          try SealedDataKey(dataKey, id: key.id, key.coverage, by: encryption))
      }
      keys = sealed
      areInFile = false
    }

    /// Writes the rows, as one batch, then the file, and marks the store as sealed.
    ///
    /// So a store that is marked has data keys.
    mutating func write(to engine: any StorageEngine) throws(StoreError) {
      var rows = WriteBatch()
      for key in keys { rows.putMetadata(try key.json, under: Metadata.dataKey(key.id)) }
      for id in unneeded {
        rows.remove(Metadata.dataKey(id).span.bytes)
        rows.remove(Metadata.sealedCount(id).span.bytes)
      }
      try engine.write(&rows, synced: true)
      try engine.keep(keys: try fileContents)
      (areInFile, unneeded) = (true, [])
      try engine.markSealed()
    }

    // The file is lines of text: its name and version, a line of JSON for each key, and the
    // checksum of these lines.

    private static let firstLine = Array("larder keys 1\n".utf8)

    private var fileContents: [UInt8] {
      get throws(StoreError) {
        var bytes = Self.firstLine
        for key in keys { bytes += try key.json + [UInt8(ascii: "\n")] }
        return bytes + Self.lastLine(after: bytes)
      }
    }

    private static func lastLine(after bytes: [UInt8]) -> [UInt8] {
      let sum = String(bytes.withUnsafeBytes { crc32c($0) }, radix: 16)
      return Array((String(repeating: "0", count: 8 - sum.count) + sum + "\n").utf8)
    }

    /// The keys in a file; nil if it is damaged, or of a later version.
    private static func keys(inFile bytes: [UInt8]) -> [SealedDataKey]? {
      let end = bytes.count - 9
      guard end >= firstLine.count, bytes.starts(with: firstLine),
        Array(bytes[end...]) == lastLine(after: Array(bytes[..<end]))
      else { return nil }
      let lines = bytes[firstLine.count..<end].split(separator: UInt8(ascii: "\n"))
      let keys = lines.compactMap { SealedDataKey(json: $0) }
      return keys.count == lines.count ? keys : nil
    }
  }
#endif
