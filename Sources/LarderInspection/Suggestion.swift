import Larder

/// Finds what somebody may have meant who has misspelt a word.
package enum Suggestion {
  /// The most letters that may be wrong.
  private static let mostEdits = 2
  /// Longer words are like no other: a comparison takes the square of their length.
  private static let mostLetters = 200

  /// The word that is most like another one; nil if none is like it.
  ///
  /// - Parameters:
  ///   - word: The misspelt word.
  ///   - words: The words that exist.
  /// - Returns: A word that differs from `word` by at most two letters, and by fewer than half of
  ///   its letters: left out, added, replaced, or two of them swapped.
  package static func word(like word: String, among words: some Sequence<String>) -> String? {
    var search = Search(for: word)
    for other in words { search.compare(other) }
    return search.best
  }

  /// The search for the most similar of many words.
  struct Search {
    private let letters: [Character]
    private var fewest: Int
    private(set) var best: String?

    init(for word: String) {
      letters = Array(word.prefix(mostLetters + 1))
      let isShort = letters.count <= mostLetters
      fewest = isShort ? min(mostEdits, (letters.count - 1) / 2) + 1 : 0
    }

    /// Whether the most similar word is found.
    var isDone: Bool { fewest <= 1 }

    /// Keeps a word if it is more similar than those before it.
    mutating func compare(_ word: String) {
      let other = Array(word.prefix(mostLetters + mostEdits + 1))
      guard abs(other.count - letters.count) < fewest else { return }
      let edits = Self.edits(from: letters, to: other)
      if edits < fewest { (fewest, best) = (edits, word) }
    }

    /// The number of edits by the restricted Damerau-Levenshtein distance.
    private static func edits(from old: [Character], to new: [Character]) -> Int {
      var (above, row) = ([Int](), Array(0...new.count))
      for (index, letter) in old.enumerated() {
        let before = above
        above = row
        row = [index + 1]
        for (place, other) in new.enumerated() {
          var edits = min(above[place + 1], row[place]) + 1
          edits = min(edits, above[place] + (letter == other ? 0 : 1))
          if index > 0, place > 0, letter == new[place - 1], old[index - 1] == other {
            edits = min(edits, before[place - 1] + 1)
          }
          row.append(edits)
        }
      }
      return row[new.count]
    }
  }
}

extension Inspection {
  /// The keys that are compared with a missing one, so that a large store is answered at once.
  private static let comparedKeys = 100_000

  /// A key of the caches that is like another one, as `ls` writes it; nil if none is.
  func keyLike(_ key: String, in caches: [KnownCache], _ form: KeyForm) -> String? {
    var search = Suggestion.Search(for: key)
    var left = Self.comparedKeys
    do throws(StoreError) {
      for cache in caches {
        let prefix = KeySpace.records.prefix(ofCache: cache.id)
        let cursor = try engine.headCursor(over: EngineRange(prefix: prefix))
        while left > 0, !search.isDone, try cursor.next() {
          left -= 1
          let userKey = cursor.withEntry { key, _ in
            [UInt8](key.extracting(prefix.count..<key.byteCount))
          }
          search.compare(form.text(of: userKey, kind: cache.keyKind))
        }
      }
    } catch {
      // The answer is that the key is missing, whatever cannot be read.
    }
    return search.best
  }
}
