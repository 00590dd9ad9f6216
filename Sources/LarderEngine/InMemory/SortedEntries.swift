/// Keys and values in the order of keys, in memory.
///
/// Entries lie in chunks of at most 512, the chunks in an array: an insertion moves half a chunk,
/// and a copy that somebody still reads costs the array and the chunk that is changed.
struct SortedEntries {
  struct Entry {
    let key: [UInt8]
    var value: [UInt8]
  }

  /// Where an entry is, or would be.
  ///
  /// The end is chunk `chunks.count`, index 0.
  struct Place: Comparable {
    var chunk: Int
    var index: Int

    static func < (a: Place, b: Place) -> Bool { (a.chunk, a.index) < (b.chunk, b.index) }
  }

  private static let chunkEntries = 512

  // No chunk is empty.
  private var chunks: [[Entry]] = []

  var end: Place { Place(chunk: chunks.count, index: 0) }

  subscript(place: Place) -> Entry { chunks[place.chunk][place.index] }

  /// The place of the first entry whose key is `key` or greater.
  func place(of key: UnsafeRawBufferPointer) -> Place {
    let chunk = firstIndex(below: chunks.count) { chunks[$0][chunks[$0].count - 1].key }
    guard chunk < chunks.count else { return end }
    return Place(
      chunk: chunk, index: firstIndex(below: chunks[chunk].count) { chunks[chunk][$0].key })

    // The first index whose key is not before `key`.
    func firstIndex(below count: Int, keyAt: (Int) -> [UInt8]) -> Int {
      var range = 0..<count
      while !range.isEmpty {
        let middle = range.lowerBound + range.count / 2
        if keyAt(middle).withUnsafeBytes({ isOrdered($0, before: key) }) {
          range = (middle + 1)..<range.upperBound
        } else {
          range = range.lowerBound..<middle
        }
      }
      return range.lowerBound
    }
  }

  /// The place of the entry whose key is `key`, or nil.
  func find(_ key: UnsafeRawBufferPointer) -> Place? {
    let place = place(of: key)
    return holds(key, at: place) ? place : nil
  }

  func holds(_ key: UnsafeRawBufferPointer, at place: Place) -> Bool {
    // The key at a place is never before the key that was looked for.
    place < end && !self[place].key.withUnsafeBytes { isOrdered(key, before: $0) }
  }

  func place(after place: Place) -> Place {
    place.index + 1 < chunks[place.chunk].count
      ? Place(chunk: place.chunk, index: place.index + 1)
      : Place(chunk: place.chunk + 1, index: 0)
  }

  func place(before place: Place) -> Place {
    place.index > 0
      ? Place(chunk: place.chunk, index: place.index - 1)
      : Place(chunk: place.chunk - 1, index: chunks[place.chunk - 1].count - 1)
  }

  mutating func put(_ key: UnsafeRawBufferPointer, _ value: [UInt8]) {
    var place = place(of: key)
    if holds(key, at: place) {
      chunks[place.chunk][place.index].value = value
      return
    }
    if place == end {
      if chunks.isEmpty { chunks.append([]) }
      place = Place(chunk: chunks.count - 1, index: chunks[chunks.count - 1].count)
    }
    chunks[place.chunk].insert(Entry(key: [UInt8](key), value: value), at: place.index)
    let count = chunks[place.chunk].count
    if count > SortedEntries.chunkEntries {
      let upper = Array(chunks[place.chunk][(count / 2)...])
      chunks[place.chunk].removeSubrange((count / 2)...)
      chunks.insert(upper, at: place.chunk + 1)
    }
  }

  mutating func remove(_ key: UnsafeRawBufferPointer) {
    guard let place = find(key) else { return }
    chunks[place.chunk].remove(at: place.index)
    let next = place.chunk + 1
    if chunks[place.chunk].isEmpty {
      chunks.remove(at: place.chunk)
    } else if next < chunks.count,
      chunks[place.chunk].count + chunks[next].count <= SortedEntries.chunkEntries / 2
    {
      chunks[place.chunk] += chunks.remove(at: next)
    }
  }
}
