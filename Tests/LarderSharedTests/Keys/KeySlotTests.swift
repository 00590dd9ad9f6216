import LarderShared
import Testing

/// The slots of a cluster.
struct KeySlotTests {
  private func slot(_ key: String) -> Int { KeySlot.slot(of: Array(key.utf8)) }

  @Test("Keys have the slots of the specification, by what stands between their first braces.")
  func slots() {
    // The specification's example of the checksum, and replies of CLUSTER KEYSLOT.
    #expect(slot("123456789") == 0x31C3)
    #expect(slot("") == 0)
    #expect(slot("somekey") == 11_058)
    #expect(slot("foo{hash_tag}") == 2515)
    #expect(slot("bar{hash_tag}") == slot("hash_tag"))
    #expect(slot("foo{}{bar}") != slot("bar"))
    #expect(slot("foo{{bar}}zap") == slot("{bar"))
    #expect(slot("foo{bar}{zap}") == slot("bar"))
    #expect(slot("{open") == slot("{open") && slot("{open") != slot("open"))
  }

  @Test("The lock of a key has the key's slot, and can be told from other keys.")
  func locks() throws {
    let keys = try SharedKeys(namespace: "shop", cache: "{a}:")
    for name in ["k", "{k}", "lock{", "}", "%7D", String(repeating: "x", count: 900)] {
      let key = try keys.key(for: Array(name.utf8))
      let lock = SharedKeys.lock(of: key)
      #expect(KeySlot.slot(of: lock) == KeySlot.slot(of: key))
      #expect(SharedKeys.key(ofLock: lock) == key)
      #expect(SharedKeys.key(ofLock: key) == nil)
      #expect(lock.starts(with: "ld1:shop:".utf8))
    }
    for other in ["ld1:shop:lease{7}", "ld1:shop:lock{}", "ld1:shop:lock{k}", "}", "{}", ""] {
      #expect(SharedKeys.key(ofLock: Array(other.utf8)) == nil, "\(other)")
    }
  }

  @Test("A node has lease keys in slots of its own, in as many of them as there are.")
  func leases() throws {
    let key = try SharedKeys.leaseKey(ofNamespace: "shop")
    for slots in [Set([16_383]), [0, 9], Set(0..<KeySlot.count), Set(5000..<5100)] {
      let keys = SharedKeys.leaseKeys(like: key, in: slots)
      let found = Set(keys.map { KeySlot.slot(of: $0) })
      #expect(keys.count == min(3, slots.count) && found.count == keys.count)
      #expect(found.isSubset(of: slots))
    }
  }
}
