public import Foundation

/// An error of a ``Store``, a ``Cache`` or a cursor.
///
/// These types throw no other errors, except for those that your own closures throw. Each method
/// lists the cases that it throws. The methods are declared `throws`, without the type:
///
/// ```swift
/// do {
///   return try Store(at: directory)
/// } catch StoreError.locked {
///   return nil                            // another process has it open
/// } catch let error as StoreError {
///   report(error)
/// }
/// ```
///
/// A missing or expired entry is not an error: reads return nil, or a case of ``Lookup``. Cases may
/// be added before version 1.0, so a `switch` over all of them needs a `default`.
public enum StoreError: Error {
  /// The value could not be encoded.
  ///
  /// Nothing was written; an existing entry is unchanged.
  case encoding(key: String, underlying: any Error)

  /// The stored bytes are intact, but do not decode as the cache's value type.
  ///
  /// The bytes are kept until the key is saved or removed, or ``Cache/validate(maxAge:)`` runs.
  case undecodable(key: String, underlying: any Error)

  /// The entry was written with a newer schema version than this program knows.
  ///
  /// The entry is kept for the program that can read it, also by ``Cache/validate(maxAge:)``. A
  /// save that would replace such an entry throws this error and writes nothing.
  case newerSchema(found: Int, known: Int)

  /// A checksum or a length on disk is wrong.
  ///
  /// If `key` is not empty, the error concerns only that entry. Its bytes are kept until the key is
  /// saved or removed, or ``Cache/validate(maxAge:)`` runs. If `key` is empty, the damage is in the
  /// store's own metadata, or in a part of a file whose keys are unknown.
  case corrupt(cache: String, key: String, file: String?)

  /// Another process, or another `Store` in this process, has the directory open.
  ///
  /// Nothing was changed. `pid` is the process that has it open; nil if unknown.
  case locked(pid: Int32?)

  /// The values of the store are sealed with another key than was given.
  ///
  /// Nothing was changed. `found` is the id of the key that opens the store. `given` is the id of
  /// the key in `Store.Options.encryption`, which is nil if no key was given. If the two ids are
  /// equal, the id is right and the key is not. A store whose key is lost can be deleted like any
  /// directory, but not read.
  case wrongKey(found: String, given: String?)

  /// The file system has no space left for a write.
  ///
  /// It is unknown whether the write took effect.
  case diskFull

  /// Writes are disabled because an earlier write failed; `cause` describes that failure.
  ///
  /// Nothing was written. Reads still work. Each write first tests whether the problem is gone, so
  /// writes resume without a reset.
  case writesDisabled(cause: String)

  /// The store is open for reading only; `cause` says why.
  ///
  /// Nothing was written.
  case readOnly(cause: String)

  /// The write would exceed the budget of a cache or of the store, and eviction cannot make room.
  ///
  /// Nothing was written. `bytes` is the least that the cache or store would hold after the write.
  /// If the write alone is larger than the budget, nothing was evicted either.
  case budgetExceeded(bytes: Int, budget: Int)

  /// A condition of a batch did not hold, or other writers changed the key during each of `tries`
  /// attempts of a conditional change.
  ///
  /// `tries` is 1 if the condition did not hold at the first attempt. Nothing was written.
  case conflict(cache: String, key: String, tries: Int)

  /// The store was closed.
  ///
  /// Nothing was read or written.
  case closed

  /// The store is suspended; see ``Store/suspend()``.
  ///
  /// Nothing was read or written.
  case suspended

  /// Another process, or another `Store`, has opened the directory while the store was suspended.
  ///
  /// The store stays suspended. Close it and open another one.
  case changedMeanwhile

  /// The operating system reported an error for a read or a write.
  ///
  /// After a failed write, it is unknown whether the write took effect.
  case io(String)

  /// This version cannot use the directory or the entry.
  ///
  /// The format is newer, or the directory is not a store. Nothing was changed.
  case incompatible(String)

  /// A key, a value, a name or a setting is outside its limits.
  ///
  /// Nothing was changed.
  case invalidArgument(String)
}

extension StoreError: LocalizedError, CustomStringConvertible {
  /// Returns ``description``, so that `localizedDescription` does too.
  public var errorDescription: String? { description }

  /// The error as sentences: what failed, on which entry or store, and how to continue.
  ///
  /// The text may contain the key and the name of the cache, but never the value.
  public var description: String {
    switch self {
    case .encoding(let key, let error):
      "The value for key \"\(key)\" could not be encoded, so nothing was saved: \(stopped(error))"
    case .undecodable(let key, let error):
      """
      The value of key "\(key)" could not be decoded: \(stopped(error)) Save or remove the key, or \
      call validate(), which deletes such entries.
      """
    case .newerSchema(let found, let known):
      """
      The entry has schema version \(found); this program knows versions up to \(known). The \
      entry is kept for the program that wrote it. Update this program, or remove the key; to \
      save over such entries, open the cache with overwritesNewer: true.
      """
    case .corrupt(let cache, let key, let file):
      Self.describeCorruption(cache: cache, key: key, file: file)
    case .locked(let pid?):
      "The store is already open in process \(pid). Close it there first."
    case .locked(nil): "The store is already open elsewhere. Close it there first."
    case .wrongKey(let found, let given):
      Self.describeWrongKey(found, given)
    case .diskFull:
      """
      The file system is full. Free disk space, or remove entries. If the store cannot be opened, \
      it can still be read with Options.access = .readOnly.
      """
    case .readOnly(let cause): "The store cannot be written to: \(stopped(cause))"
    case .writesDisabled(let cause):
      "Writes are disabled after a failed write: \(stopped(cause)) The next write tries again."
    case .budgetExceeded(let bytes, let budget):
      """
      The write would take the cache or store to \(bytes) bytes, over its budget of \(budget) \
      bytes, and eviction cannot make enough room. Save less data, or open it with a larger \
      byteBudget.
      """
    case .conflict(let cache, let key, let tries):
      """
      The condition on key "\(key)" of cache \(cache) did not hold at one of \(tries) tries, or \
      other writers changed the key during each of them, so nothing was written. Read the entry \
      again before you retry.
      """
    case .closed: "The store is closed. Open it again."
    case .suspended: "The store is suspended. Call resume() first."
    case .changedMeanwhile:
      "The store was opened elsewhere while it was suspended. Close it, and open it again."
    case .io(let message): "The store could not be read or written: \(stopped(message))"
    case .incompatible(let message):
      "The store or entry is incompatible with this version: \(stopped(message))"
    case .invalidArgument(let message): "Invalid argument: \(stopped(message))"
    }
  }

  private static func describeWrongKey(_ found: String, _ given: String?) -> String {
    let what = "The values of the store are sealed with the key \"\(found)\""
    return switch given {
    case nil: "\(what). Open it with that key as Options.encryption."
    case found?: "\(what), and the key that was given under this id is another one."
    case let given?: "\(what), not with \"\(given)\". Open it with that key."
    }
  }

  private static func describeCorruption(cache: String, key: String, file: String?) -> String {
    let place = file.map { " (\($0))" } ?? ""
    if file == nil, !key.isEmpty {
      return """
        The entry for key "\(key)" in cache "\(cache)" is damaged. Save or remove the key, or call \
        validate(), which deletes such entries.
        """
    }
    let what =
      if key.isEmpty {
        cache.isEmpty ? "The store is damaged" : "A part of cache \"\(cache)\" is damaged"
      } else {
        "The entry for key \"\(key)\" in cache \"\(cache)\" cannot be read: its file is damaged"
      }
    return """
      \(what)\(place). Open the store with onDamage: .salvage, or copy what is readable with \
      Store.salvage(from:to:).
      """
  }
}

/// An error or a message as text that ends with a full stop.
private func stopped(_ words: Any) -> String {
  let text = "\(words)"
  return text.hasSuffix(".") ? text : text + "."
}

extension StoreError {
  /// The error for damage whose cache and key are not known; `place` says where the damage is.
  package static func corrupt(_ place: String) -> StoreError {
    .corrupt(cache: "", key: "", file: place)
  }

  /// The error with the cache and the key that were read, if it is a damage that names neither.
  package func naming(cache: String, key: String = "") -> StoreError {
    guard case .corrupt(cache: "", key: "", let file) = self else { return self }
    return .corrupt(cache: cache, key: key, file: file)
  }

  /// Whether the file system has no room, or had none for an earlier write.
  var isFullDisk: Bool {
    switch self {
    case .diskFull: true
    case .writesDisabled(let cause): cause == "\(Self.diskFull)"
    default: false
    }
  }
}
