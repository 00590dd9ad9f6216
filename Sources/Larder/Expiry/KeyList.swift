/// User keys of one cache, one after another in one buffer.
struct KeyList {
  private var bytes: [UInt8] = []
  private var places: [Range<Int>] = []

  var count: Int { places.count }
  /// The memory for the keys, without their places.
  var byteCount: Int { bytes.count }

  mutating func append(_ key: UnsafeRawBufferPointer) {
    let start = bytes.count
    bytes.append(contentsOf: key)
    places.append(start..<bytes.count)
  }

  mutating func append(_ key: ArraySlice<UInt8>) { key.withUnsafeBytes { append($0) } }

  /// The key with this index.
  subscript(index: Int) -> ArraySlice<UInt8> { bytes[places[index]] }

  /// Calls `body` with each key, which it may use until the last call has ended.
  func forEach(_ body: (UnsafeRawBufferPointer) -> Void) {
    bytes.withUnsafeBytes { bytes in
      for place in places { body(UnsafeRawBufferPointer(rebasing: bytes[place])) }
    }
  }

  /// Sorts the keys by their bytes, and leaves each in the list once.
  mutating func sort() {
    let all = places.count
    defer { if places.count < all { removeUnused() } }
    bytes.withUnsafeBytes { bytes in
      func key(_ place: Range<Int>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[place])
      }
      places.sort { isOrdered(key($0), before: key($1)) }
      var kept = 0
      for place in places where kept == 0 || isOrdered(key(places[kept - 1]), before: key(place)) {
        places[kept] = place
        kept += 1
      }
      places.removeLast(places.count - kept)
    }
  }

  /// Frees the memory of keys that are no longer in the list.
  private mutating func removeUnused() {
    var list = KeyList()
    for index in 0..<count { list.append(self[index]) }
    self = list
  }

  /// The same keys in lists of at most so many keys and bytes, unless a key is longer by itself.
  func split(keys: Int, bytes: Int) -> [KeyList] {
    var lists: [KeyList] = []
    var list = KeyList()
    for index in 0..<count {
      let key = self[index]
      if list.count == keys || list.count > 0 && list.byteCount + key.count > bytes {
        lists.append(list)
        list = KeyList()
      }
      list.append(key)
    }
    if list.count > 0 { lists.append(list) }
    return lists
  }
}
