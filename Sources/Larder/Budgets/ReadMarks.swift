import LarderEngine
import Synchronization

/// Remembers, about, which entries were read, as long as the store is open.
///
/// An entry has one bit of many, by the hash of its key, and shares it with others. An entry that
/// was not read may seem to have been, and then lives longer; the other way round it does not
/// happen.
final class ReadMarks {
  /// A bit for every 128 bytes of a budget.
  private static let bytesForABit = 128
  private static let wordCounts = 8...(2 << 20)

  // As many atomics as the budget asks for; Swift has no array of them.
  private let words: UnsafeMutablePointer<Atomic<UInt64>>
  private let wordCount: Int

  /// - Parameter budget: How many bytes the entries may take, in all.
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

  /// Remembers that the entry was read whose record has this key.
  func mark(_ recordKey: RawSpan) {
    let (word, bit) = place(of: recordKey)
    // Most marks are there already, and a read writes nothing then that another thread reads.
    guard words[word].load(ordering: .relaxed) & bit == 0 else { return }
    words[word].bitwiseOr(bit, ordering: .relaxed)
  }

  /// Answers whether the entry seems to have been read, and forgets it.
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
