#if Encryption
  public import Crypto

  /// The key that seals what a store's caches keep on disk, with the package trait `Encryption`.
  ///
  /// ```swift
  /// var options = Store.Options()
  /// options.encryption = .key(id: "2026", key)                           // 256 bits
  /// options.encryption = .key(id: "2027", new, replacing: ["2026": key]) // a year later
  /// ```
  ///
  /// Values and validators are sealed with AES-256-GCM. Keys, tags, names of caches, settings,
  /// dates and sizes stay readable. See <doc:Encrypting>.
  public struct Encryption: Sendable {
    /// The key that seals the store's data keys.
    let key: SymmetricKey
    /// Its name, which the store keeps beside what it seals.
    let keyID: String
    /// Keys of before, by their ids.
    let replaced: [String: SymmetricKey]

    /// Whether large values are compressed before they are sealed, as ``Store/Options/compression``
    /// says.
    ///
    /// The default is false. The size of a compressed value tells something of its contents to
    /// someone who can choose a part of the value and see the files more than once.
    public var compressesValues = false

    /// The key of a store.
    ///
    /// If the store is sealed with one of the replaced keys, opening it for writing seals its data
    /// keys with the new one, in one step: from then on the replaced key opens it no more.
    ///
    /// - Parameters:
    ///   - id: A name for the key, 1 to 255 bytes of UTF-8. It is readable in the store's files,
    ///     and in the error if another key is used. Another key must have another id.
    ///   - key: 256 bits. Keep it where the system keeps secrets. If it is lost, nobody can read
    ///     the values.
    ///   - replaced: Keys with which the store may be sealed so far, by their ids. None by default.
    /// - Returns: The setting for ``Store/Options/encryption``.
    public static func key(
      id: String, _ key: SymmetricKey, replacing replaced: [String: SymmetricKey] = [:]
    ) -> Encryption {
      Encryption(key: key, keyID: id, replaced: replaced)
    }

    /// A key of these bytes, for tools.
    static func key(id: String, bytes: [UInt8]) -> Encryption {
      .key(id: id, SymmetricKey(data: bytes))
    }

    private init(key: SymmetricKey, keyID: String, replaced: [String: SymmetricKey]) {
      (self.key, self.keyID, self.replaced) = (key, keyID, replaced)
    }

    /// Throws ``StoreError/invalidArgument(_:)`` for a key or an id that is not allowed.
    func check() throws(StoreError) {
      for (id, key) in replaced.merging([keyID: key], uniquingKeysWith: { $1 }) {
        guard (1...255).contains(id.utf8.count) else {
          throw .invalidArgument("a key's id of \(id.utf8.count) bytes; 1 to 255 are allowed")
        }
        guard key.bitCount == 256 else {
          throw .invalidArgument("key \"\(id)\" has \(key.bitCount) bits; it must have 256")
        }
      }
      guard replaced[keyID] == nil else {
        throw .invalidArgument("key \"\(keyID)\" would replace one of the same id")
      }
    }

    /// The key with an id; nil if it was not given.
    func key(named id: String) -> SymmetricKey? { id == keyID ? key : replaced[id] }
  }
#endif
