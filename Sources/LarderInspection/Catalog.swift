import Foundation
import Larder

/// A cache found in a store: its registration, or only its number if there is none.
struct KnownCache: Sendable {
  let id: UInt64
  /// Nil if no cache is registered under the number.
  let name: String?
  /// Nil if the registration is missing or cannot be read.
  let registration: Registration?
  /// Opens the cache's sealed records; nil without the key.
  var opener: RecordOpener?

  /// The kind of the keys; bytes if there is no registration.
  var keyKind: KeyKind { registration.map { KeyKind(code: $0.keyKind) } ?? .bytes }

  /// The name in the form that `--cache` accepts.
  var label: String { name.map(KeyForm.text(ofName:)) ?? "#\(id)" }
}

/// The contents of a store's metadata.
///
/// Damaged rows are left out and reported in ``damage``.
struct Catalog: Sendable {
  private(set) var caches: [KnownCache] = []
  /// The places in ``caches`` by the bytes of names and labels, which may be equal as texts.
  private var placesOfNames: [[UInt8]: Int] = [:]
  private var placesOfNumbers: [UInt64: Int] = [:]
  /// Numbers of cleared caches.
  ///
  /// Their rows are not entries; the store deletes them in the background.
  private(set) var cleared: Set<UInt64> = []
  /// The byte counts of caches that have one, by number; nil for a damaged count.
  private(set) var counts: [UInt64: Int?] = [:]
  /// The commit sequence up to which all records are noted; 0 if that is not known.
  private(set) var notedSequence: UInt64 = 0
  /// The tags that were invalidated.
  let invalidatedTags = InvalidatedTags()
  /// The store's format version; a store without caches has not stored one yet.
  private(set) var formatVersion = Metadata.formatVersion
  private(set) var damage: [String] = []
  /// For each data key, the id of the user's key that seals it; nil if its row is damaged.
  private(set) var userKeys: [String?] = []
  /// Whether the store has a key, so that its records may be sealed.
  var isSealed: Bool { !userKeys.isEmpty }
  let opener: RecordOpener?

  /// Reads the metadata key space.
  ///
  /// - Parameters:
  ///   - engine: The engine of the store.
  ///   - opener: Opens its sealed records; nil without the key.
  /// - Throws: An ``InspectionError`` with the status `unsupported` for a later version, `io`.
  init(readFrom engine: any StorageEngine, _ opener: RecordOpener?) throws(InspectionError) {
    self.opener = opener
    do throws(StoreError) {
      let cursor = try engine.cursor(over: EngineRange(prefix: [KeySpace.metadata.rawValue]))
      while try cursor.next() {
        let (key, value) = cursor.withEntry { key, value in
          ([UInt8](key), [UInt8](value))
        }
        try note(value, under: key)
      }
    } catch .corrupt(_, _, let message?) {
      damage.append("part of the metadata cannot be read: \(message)")
    } catch .incompatible(let message) {
      throw InspectionError(.unsupported, message)
    } catch {
      throw InspectionError(error)
    }
  }

  private mutating func note(_ value: [UInt8], under key: [UInt8]) throws(StoreError) {
    if key == Metadata.format {
      guard let format = Metadata.number(in: value, under: key) else {
        return damage.append("the store's format version is damaged")
      }
      guard format <= Metadata.formatVersion else { throw .incompatible("store format \(format)") }
      formatVersion = format
    } else if key.starts(with: Metadata.reclaimPrefix) {
      if let id = Metadata.reclaimedID(in: key.span.bytes) { cleared.insert(id) }
    } else if let id = Metadata.countedID(in: key.span.bytes) {
      counts[id] = .some(Metadata.count(in: value, under: key))
    } else if key.starts(with: Metadata.dataKeyPrefix) {
      userKeys.append(RecordOpener.userKeyID(inRow: value, under: key))
    } else if key == Metadata.notes {
      notedSequence = ExpiryNotes.notedSequence(in: value) ?? 0
    } else if key.starts(with: Metadata.tagPrefix) {
      guard !invalidatedTags.readRow(value.span.bytes, under: key.span.bytes) else { return }
      let tag = KeyForm.text(ofName: String(decoding: Metadata.tag(in: key), as: UTF8.self))
      damage.append("the row of the invalidated tag \(tag) is damaged")
    } else if key.starts(with: Metadata.cachePrefix) {
      note(value, under: key, ofCache: Metadata.cacheName(in: key))
    }
  }

  private mutating func note(_ value: [UInt8], under key: [UInt8], ofCache name: String) {
    let label = KeyForm.text(ofName: name)
    switch Registration.read(value, under: key) {
    case .registration(let registration):
      for text in [label, name] { placesOfNames[Array(text.utf8)] = caches.count }
      placesOfNumbers[registration.id] = caches.count
      caches.append(
        KnownCache(
          id: registration.id, name: name, registration: registration, opener: opener))
    case .damaged: damage.append("the registration of cache \(label) is damaged")
    case .unsupported:
      damage.append("the registration of cache \(label) cannot be read by this version")
    }
  }

  /// The cache with this number, registered or not.
  func cache(numbered id: UInt64) -> KnownCache {
    placesOfNumbers[id].map { caches[$0] } ?? KnownCache(id: id, name: nil, registration: nil)
  }

  /// Whether a cache with this label or name is registered.
  func hasCache(called label: String) -> Bool { placesOfNames[Array(label.utf8)] != nil }

  /// The cache called `label`: its name, or `#` and its number.
  func cache(called label: String) throws(InspectionError) -> KnownCache {
    if let place = placesOfNames[Array(label.utf8)] { return caches[place] }
    if label.hasPrefix("#"), let id = UInt64(label.dropFirst()) { return cache(numbered: id) }
    throw InspectionError(.notFound, "there is no cache \(label)")
  }
}
