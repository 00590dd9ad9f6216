/// The result of ``Store/salvage(from:to:)``: what was copied, and what was lost.
public struct SalvageReport: Sendable, Hashable {
  /// A range of keys whose entries could not be read.
  public struct Loss: Sendable, Hashable {
    /// The name of the cache; nil if it is unknown.
    public let cache: String?
    /// The last readable key before the loss, as text; nil if there is none in the cache.
    public let after: String?
    /// The first readable key after the loss, as text; nil if there is none in the cache.
    ///
    /// If a single entry is lost, ``after`` and ``before`` are both its key.
    public let before: String?
  }

  /// The number of entries that were copied, by cache name; 0 for an empty cache.
  public internal(set) var entries: [String: Int] = [:]
  /// The key ranges that could not be read, in the order of their keys.
  ///
  /// A range may have held no entry: the damaged block may have held only removals.
  public internal(set) var losses: [Loss] = []
  /// The names of caches whose registrations are damaged.
  ///
  /// Only the registration maps entries to their cache, so these entries are among
  /// ``namelessEntries``.
  public internal(set) var lostCaches: [String] = []
  /// The number of copied entries whose cache's registration is lost.
  ///
  /// Those of each such cache are in a cache `recovered-7`, named by its number in the store, which
  /// ``entries`` lists. Its keys are bytes, and its lifetime is the shortest that an entry was
  /// saved with.
  public internal(set) var namelessEntries = 0

  /// Invalidated tags for which it is lost when they were invalidated.
  ///
  /// Every entry with such a tag has ended, also if it was saved later.
  public internal(set) var endedTags: [String] = []
  /// Whether a part of the store's own rows is lost.
  ///
  /// If true, entries that were ended by ``Store/invalidate(tag:durability:)`` may be there again.
  public internal(set) var mayLackInvalidations = false

  init() {}

  /// Whether every entry was copied to its cache, and none that had ended is there again.
  public var isComplete: Bool {
    losses.isEmpty && lostCaches.isEmpty && namelessEntries == 0 && endedTags.isEmpty
      && !mayLackInvalidations
  }
}

extension SalvageReport: CustomStringConvertible {
  /// The report in sentences, for messages and logs.
  public var description: String {
    var sentences = ["\(entries.values.reduce(0, +)) entries were copied."]
    for loss in losses {
      let cache = loss.cache.map { "cache \"\($0)\"" } ?? "an unknown cache"
      let after = loss.after.map { " after key \"\($0)\"" } ?? ""
      let before = loss.before.map { " before key \"\($0)\"" } ?? ""
      sentences.append("Entries of \(cache)\(after)\(before) may be lost.")
    }
    for name in lostCaches { sentences.append("The registration of cache \"\(name)\" is lost.") }
    if namelessEntries > 0 {
      sentences.append(
        "\(namelessEntries) of them have no cache registration, and are in caches called "
          + "\"recovered-\" and a number.")
    }
    for tag in endedTags {
      sentences.append("All entries with the invalidated tag \"\(tag)\" have ended.")
    }
    if mayLackInvalidations {
      sentences.append("Entries of invalidated tags may be there again.")
    }
    return sentences.joined(separator: " ")
  }
}
