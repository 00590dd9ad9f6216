import Synchronization

/// Marks the entries that were read, approximately, while the store is open.
///
/// The hash of an entry's key selects one of many bits, which other entries share. So an entry may
/// look read although it was not, and is then kept longer; the opposite does not happen.
final class ReadMarks {
  /// The bytes of a budget for each bit.
  private static let bytesForABit = 128
  private static let wordCounts = 8...(2 << 20)

  // As many atomics as the budget asks for; Swift has no array of them.
  private let words: UnsafeMutablePointer<Atomic<UInt64>>
  private let wordCount: Int

  /// - Parameter budget: The most bytes that the entries may take together.
  init(budget: Int) {
    let wanted = budget / Self.bytesForABit / UInt64.bitWidth
    wordCount = min(max(wanted, Self.wordCounts.lowerBound), Self.wordCounts.upperBound)
    words = .allocate(capacity: wordCount)
    for word in 0..<wordCount { (words + word).initialize(to: Atomic(0)) }
  }

  deinit {
    words.deinitialize(count: wordCount)
    words.deallocate()
  }

  /// Marks the entry with this record key as read.
  func mark(_ recordKey: RawSpan) {
    let (word, bit) = place(of: recordKey)
    // Most bits are set already. Then nothing is written, and other threads' caches stay valid.
    guard words[word].load(ordering: .relaxed) & bit == 0 else { return }
    words[word].bitwiseOr(bit, ordering: .relaxed)
  }

  /// Returns whether the entry looks read, and clears its mark.
  func take(_ recordKey: RawSpan) -> Bool {
    let (word, bit) = place(of: recordKey)
    guard words[word].load(ordering: .relaxed) & bit != 0 else { return false }
    words[word].bitwiseAnd(~bit, ordering: .relaxed)
    return true
  }

  private func place(of key: RawSpan) -> (word: Int, bit: UInt64) {
    let hash = UInt64(key.withUnsafeBytes { crc32c($0) })
    let bit = Int((hash &* UInt64(wordCount * UInt64.bitWidth)) >> 32)
    return (bit / UInt64.bitWidth, 1 << UInt64(bit % UInt64.bitWidth))
  }
}

// @unchecked: the pointer never changes, and what it points to are atomics.
extension ReadMarks: @unchecked Sendable {}
