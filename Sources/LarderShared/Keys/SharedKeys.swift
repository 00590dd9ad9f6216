package import Larder

/// The keys under which a server has the entries of a cache, and the way back.
///
///     ld1:<namespace>:<cache>:<key>
///
/// The key is as it is on disk. A brace would choose the slot of a cluster, so `{`, `}` and `%` are
/// written as `%7B`, `%7D` and `%25`; in the name of a cache also `:`, as `%3A`. So no two entries
/// have the same key, and the keys of a namespace have a common prefix, for rights and counts.
package struct SharedKeys: Sendable, Hashable {
  /// The most bytes that a server's key has.
  package static let limit = 1024

  /// What the keys of the cache begin with.
  package let prefix: [UInt8]

  /// - Throws: ``StoreError/invalidArgument(_:)`` if the namespace is not 1 to 64 bytes long, or
  ///   has a brace, a colon, a percent sign or a control character.
  package init(namespace: String, cache: String) throws(StoreError) {
    var prefix = try Self.prefix(ofNamespace: namespace)
    Self.append(cache.utf8, to: &prefix, isName: true)
    prefix.append(UInt8(ascii: ":"))
    self.prefix = prefix
  }

  /// A key that no entry of the namespace has, for renewals of a link's lease.
  ///
  /// Throws as ``init(namespace:cache:)``.
  package static func leaseKey(ofNamespace namespace: String) throws(StoreError) -> [UInt8] {
    // The keys of entries have a third colon.
    try prefix(ofNamespace: namespace) + Array("lease".utf8)
  }

  /// Lease keys for a node of a cluster: each is in one of the node's slots.
  ///
  /// - Parameters:
  ///   - leaseKey: The lease key of the namespace.
  ///   - slots: The node's slots, at least one.
  ///   - count: How many keys; 3 by default.
  /// - Returns: The keys, each of another slot; fewer if there are fewer slots.
  package static func leaseKeys(
    like leaseKey: [UInt8], in slots: Set<Int>, _ count: Int = 3
  ) -> [[UInt8]] {
    var keys: [Int: [UInt8]] = [:]
    // The numbers up to a million have all slots.
    for number in 0..<1_000_000 {
      if keys.count == min(count, slots.count) { break }
      // What stands between the braces has the slot.
      let slot = KeySlot.slot(of: Array(String(number).utf8))
      if slots.contains(slot), keys[slot] == nil {
        keys[slot] = leaseKey + Array("{\(number)}".utf8)
      }
    }
    return Array(keys.values)
  }

  /// The key of the lock of the machine that loads an entry.
  ///
  ///     ld1:<namespace>:lock{<the entry's key>}
  ///
  /// It is in the same slot of a cluster as the entry. Apart from lease keys, only locks end with a
  /// brace.
  package static func lock(of key: [UInt8]) -> [UInt8] {
    let colons = key.indices.lazy.filter { key[$0] == UInt8(ascii: ":") }
    var lock = colons.dropFirst().first.map { Array(key[...$0]) } ?? []
    lock += lockStart
    lock += key
    lock.append(UInt8(ascii: "}"))
    return lock
  }

  private static let lockStart = Array("lock{".utf8)

  /// The entry's key whose lock has a key; nil if that is not the key of a lock.
  package static func key(ofLock key: [UInt8]) -> [UInt8]? {
    guard key.last == UInt8(ascii: "}"), let brace = key.firstIndex(of: UInt8(ascii: "{")) else {
      return nil
    }
    let entryKey = Array(key[(brace + 1)...].dropLast())
    return lock(of: entryKey) == key ? entryKey : nil
  }

  /// The server's key of an entry.
  ///
  /// - Throws: ``StoreError/invalidArgument(_:)`` if it is longer than ``limit``.
  package func key(for userKey: some Collection<UInt8>) throws(StoreError) -> [UInt8] {
    var key = prefix
    key.reserveCapacity(prefix.count + userKey.count)
    Self.append(userKey, to: &key, isName: false)
    guard key.count <= Self.limit else {
      throw .invalidArgument(
        "a key of \(key.count) bytes in the shared tier; the limit is \(Self.limit)")
    }
    return key
  }

  /// The entry's key within a server's key; nil if that is not a key of this cache.
  package func userKey(of key: [UInt8]) -> [UInt8]? {
    guard key.starts(with: prefix) else { return nil }
    var userKey: [UInt8] = []
    var rest = key.dropFirst(prefix.count)
    while let byte = rest.popFirst() {
      guard Self.isEscaped(byte, inName: false) else {
        userKey.append(byte)
        continue
      }
      let digits = rest.prefix(2)
      guard byte == Self.escape,
        let escaped = Self.escapable.first(where: { Self.digits(of: $0).elementsEqual(digits) }),
        Self.isEscaped(escaped, inName: false)
      else { return nil }
      userKey.append(escaped)
      rest = rest.dropFirst(2)
    }
    return userKey
  }

  /// What the keys of the cache begin with that a server's key belongs to; nil if it is of none.
  package static func prefix(of key: [UInt8]) -> ArraySlice<UInt8>? {
    let colons = key.indices.lazy.filter { key[$0] == UInt8(ascii: ":") }
    return colons.dropFirst(2).first.map { key[...$0] }
  }

  private static let escape = UInt8(ascii: "%")
  private static let escapable = Array("%{}:".utf8)

  private static func isEscaped(_ byte: UInt8, inName: Bool) -> Bool {
    escapable.contains(byte) && (inName || byte != UInt8(ascii: ":"))
  }

  private static func digits(of byte: UInt8) -> String.UTF8View {
    String(byte, radix: 16, uppercase: true).utf8
  }

  private static func append(
    _ bytes: some Collection<UInt8>, to key: inout [UInt8], isName: Bool
  ) {
    for byte in bytes {
      guard isEscaped(byte, inName: isName) else {
        key.append(byte)
        continue
      }
      key.append(escape)
      key.append(contentsOf: digits(of: byte))
    }
  }

  private static func prefix(ofNamespace namespace: String) throws(StoreError) -> [UInt8] {
    let bytes = Array(namespace.utf8)
    guard 1...64 ~= bytes.count,
      !bytes.contains(where: { escapable.contains($0) || $0 < 0x20 || $0 == 0x7F })
    else {
      throw .invalidArgument(
        "the namespace \(namespace.debugDescription): 1 to 64 bytes without braces, colons, "
          + "percent signs and control characters are allowed")
    }
    return Array("ld1:".utf8) + bytes + [UInt8(ascii: ":")]
  }
}
