/// Keys and values in memory, in the order of keys.
///
/// Entries lie in an array of chunks of at most 512. An insertion moves half a chunk on average. A
/// change while a cursor holds a copy costs a copy of the array and of the changed chunk.
struct SortedEntries {
  struct Entry {
    let key: [UInt8]
    var value: [UInt8]
  }

  /// The position where an entry is, or would be inserted.
  ///
  /// The end is chunk `chunks.count`, index 0.
  struct Position: Comparable {
    var chunk: Int
    var index: Int

    static func < (a: Position, b: Position) -> Bool { (a.chunk, a.index) < (b.chunk, b.index) }
  }

  private static let chunkEntries = 512

  // No chunk is empty.
  private var chunks: [[Entry]] = []

  var end: Position { Position(chunk: chunks.count, index: 0) }

  subscript(position: Position) -> Entry { chunks[position.chunk][position.index] }

  /// The position of the first entry whose key is `key` or greater.
  func position(of key: UnsafeRawBufferPointer) -> Position {
    let chunk = firstIndex(below: chunks.count) { chunks[$0][chunks[$0].count - 1].key }
    guard chunk < chunks.count else { return end }
    return Position(
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

  /// The position of the entry whose key is `key`, or nil.
  func find(_ key: UnsafeRawBufferPointer) -> Position? {
    let position = position(of: key)
    return holds(key, at: position) ? position : nil
  }

  func holds(_ key: UnsafeRawBufferPointer, at position: Position) -> Bool {
    // The key at a position is never before the key that was searched for.
    position < end && !self[position].key.withUnsafeBytes { isOrdered(key, before: $0) }
  }

  func position(after position: Position) -> Position {
    position.index + 1 < chunks[position.chunk].count
      ? Position(chunk: position.chunk, index: position.index + 1)
      : Position(chunk: position.chunk + 1, index: 0)
  }

  func position(before position: Position) -> Position {
    position.index > 0
      ? Position(chunk: position.chunk, index: position.index - 1)
      : Position(chunk: position.chunk - 1, index: chunks[position.chunk - 1].count - 1)
  }

  mutating func put(_ key: UnsafeRawBufferPointer, _ value: [UInt8]) {
    var position = position(of: key)
    if holds(key, at: position) {
      chunks[position.chunk][position.index].value = value
      return
    }
    if position == end {
      if chunks.isEmpty { chunks.append([]) }
      position = Position(chunk: chunks.count - 1, index: chunks[chunks.count - 1].count)
    }
    chunks[position.chunk].insert(Entry(key: [UInt8](key), value: value), at: position.index)
    let count = chunks[position.chunk].count
    if count > SortedEntries.chunkEntries {
      let upper = Array(chunks[position.chunk][(count / 2)...])
      chunks[position.chunk].removeSubrange((count / 2)...)
      chunks.insert(upper, at: position.chunk + 1)
    }
  }

  mutating func remove(_ key: UnsafeRawBufferPointer) {
    guard let position = find(key) else { return }
    chunks[position.chunk].remove(at: position.index)
    let next = position.chunk + 1
    if chunks[position.chunk].isEmpty {
      chunks.remove(at: position.chunk)
    } else if next < chunks.count,
      chunks[position.chunk].count + chunks[next].count <= SortedEntries.chunkEntries / 2
    {
      chunks[position.chunk] += chunks.remove(at: next)
    }
  }
}
