/// What ``Store/salvage(from:to:)`` copied, and what was lost.
public struct SalvageReport: Sendable, Hashable {
  /// Entries whose bytes could not be read, and between which keys they were.
  public struct Loss: Sendable, Hashable {
    /// The cache's name; nil if it is not known.
    public let cache: String?
    /// The last readable key before the loss, for people; nil if the cache begins with the loss.
    public let after: String?
    /// The first readable key behind the loss, for people; nil if the cache ends with the loss.
    public let before: String?
  }

  /// How many entries were copied, by the name of their cache; 0 for an empty cache.
  public internal(set) var entries: [String: Int] = [:]
  /// The parts of caches that could not be read, in the order of their keys.
  ///
  /// Where a loss is, there may have been no entry: a damaged block may have held removals only.
  public internal(set) var losses: [Loss] = []
  /// The names of caches whose registrations are damaged.
  ///
  /// Their entries were not copied: what is left of a registration does not say whose they are.
  public internal(set) var lostCaches: [String] = []
  /// How many entries were not copied because the registration of their cache is lost.
  public internal(set) var namelessEntries = 0

  init() {}

  /// Whether everything was copied.
  public var isComplete: Bool { losses.isEmpty && lostCaches.isEmpty && namelessEntries == 0 }
}

extension SalvageReport: CustomStringConvertible {
  /// Sentences for people.
  public var description: String {
    var sentences = ["\(entries.values.reduce(0, +)) entries were copied."]
    for loss in losses {
      let cache = loss.cache.map { "cache \($0)" } ?? "a cache without a name"
      let after = loss.after.map { " after key \($0)" } ?? ""
      let before = loss.before.map { " before key \($0)" } ?? ""
      sentences.append("Entries of \(cache)\(after)\(before) may be lost.")
    }
    for name in lostCaches { sentences.append("The registration of cache \(name) is lost.") }
    if namelessEntries > 0 {
      sentences.append("\(namelessEntries) entries of lost caches were not copied.")
    }
    return sentences.joined(separator: " ")
  }
}
