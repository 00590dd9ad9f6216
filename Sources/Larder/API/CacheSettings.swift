/// The settings that a cache is opened with, which another opening of it must match.
struct CacheSettings {
  let keyType: any CacheKey.Type
  let valueType: Any.Type
  let lifetime: Lifetime
  let schemaVersion: Int
  /// The versions of the schema's readers; the readers are closures and cannot be compared.
  let readerVersions: Set<Int>
  let coder: PayloadFormat
  let byteBudget: Int?
  let expiry: Expiry
  let memory: MemoryTier
  let loading: Loading
  /// Whether saves replace entries of newer schema versions.
  let overwritesNewer: Bool
}

extension CacheSettings {
  /// A setting that differs, with both values as text.
  struct Difference {
    let name: String
    let current: String
    let wanted: String
  }

  /// The settings that differ in `wanted`; empty if all are equal.
  func differences(from wanted: CacheSettings) -> [Difference] {
    var differences: [Difference] = []
    func compare<T: Equatable>(
      _ name: String, _ setting: (CacheSettings) -> T, _ words: (T) -> String = { "\($0)" }
    ) {
      let (current, other) = (setting(self), setting(wanted))
      guard current != other else { return }
      differences.append(Difference(name: name, current: words(current), wanted: words(other)))
    }
    compare("key type", { Named(type: $0.keyType) })
    compare("value type", { Named(type: $0.valueType) })
    compare("lifetime", \.lifetime, \.words)
    compare("expiry", \.expiry)
    compare("schema version", \.schemaVersion)
    compare("schema readers", \.readerVersions) { versions in
      versions.isEmpty
        ? "for no older version"
        : "for versions \(versions.sorted().map(String.init).joined(separator: ", "))"
    }
    compare("coder", \.coder)
    compare("loading", \.loading)
    compare("byteBudget", \.byteBudget) { $0.map { "\($0)" } ?? "nil" }
    compare("memory", \.memory)
    compare("overwritesNewer", \.overwritesNewer)
    return differences
  }
}

/// A type, compared by identity.
private struct Named: Equatable, CustomStringConvertible {
  let type: Any.Type

  var description: String { "\(type)" }

  static func == (left: Named, right: Named) -> Bool { left.type == right.type }
}

extension StoreError {
  /// The error for a cache that is already open with other settings: at least one difference, and
  /// if there are several, each has a line.
  init(cacheIsOpen name: String, differingIn differences: [CacheSettings.Difference]) {
    guard differences.count > 1 else {
      let only = differences[0]
      self = .invalidArgument(
        """
        cache "\(name)" is already open with \(only.name) \(only.current); this call asks for \
        \(only.wanted). Open it with the same \(only.name), or close the store first.
        """)
      return
    }
    let lines = differences.map { "  \($0.name): \($0.current), this call asks for \($0.wanted)" }
    self = .invalidArgument(
      """
      cache "\(name)" is already open with other settings:
      \(lines.joined(separator: "\n"))
      Open it with the same settings, or close the store first.
      """)
  }
}
