public import Foundation
import LarderEngine

/// Why an operation on a store failed.
///
/// Every error of a ``Store``, a ``Cache`` or a cursor is a `StoreError`; each method names the
/// cases that it throws. The methods are declared `throws`, without the type:
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
/// A missing or expired entry is not an error: reads answer `nil`, or say so in a ``Lookup``. More
/// cases may come before version 1.0; a `switch` over all of them wants a `default`.
public enum StoreError: Error {
  /// The value could not be encoded.
  ///
  /// Nothing was written; an older entry is as it was.
  case encoding(key: String, underlying: any Error)

  /// Intact bytes were found, but they do not decode as the cache's type.
  ///
  /// The bytes are kept until the key is saved, removed, or ``Cache/validate(maxAge:)`` runs.
  case undecodable(key: String, underlying: any Error)

  /// The entry was written with a newer version of its type than this program knows.
  ///
  /// The entry is kept, by ``Cache/validate(maxAge:)`` too, for the program that can read it. A
  /// save throws this when it would replace such an entry: nothing was written.
  case newerSchema(found: Int, known: Int)

  /// A checksum or a length on disk is wrong.
  ///
  /// Only this entry is concerned, unless `key` is empty: then it is the store's own bookkeeping,
  /// or a part of a file of which no key is known.
  ///
  /// The bytes are kept until the key is saved, removed, or ``Cache/validate(maxAge:)`` runs.
  case corrupt(cache: String, key: String, file: String?)

  /// Another process, or another `Store` in this one, has the directory open.
  ///
  /// Nothing was touched.
  ///
  /// `pid` is the owner's, where it can be told.
  case locked(pid: Int32?)

  /// The file system has no room left for a write.
  ///
  /// Whether the write took effect is unknown.
  case diskFull

  /// An earlier write failed, and its reason, `cause`, is still there.
  ///
  /// Nothing was written, and reading goes on. Each write tries first whether the reason is gone:
  /// there is nothing to reset.
  case writesDisabled(cause: String)

  /// The store was opened for reading only, because of `cause`.
  ///
  /// Nothing was written.
  case readOnly(cause: String)

  /// A cache, or the store, would hold more than its budget, and nothing can be evicted for that.
  ///
  /// Nothing was written. `bytes` is what it would hold at least. When what is to be written is
  /// larger than the budget by itself, nothing was evicted either.
  case budgetExceeded(bytes: Int, budget: Int)

  /// The store was closed.
  ///
  /// Nothing was read or written.
  case closed

  /// The operating system refused a read or a write.
  ///
  /// After a failed write, whether it took effect is unknown.
  case io(String)

  /// What is on disk must not be touched by this version: a newer format, or not a store at all.
  case incompatible(String)

  /// A key, a value, a name or a setting is outside its limits.
  ///
  /// Nothing was done.
  case invalidArgument(String)
}

extension StoreError: LocalizedError, CustomStringConvertible {
  /// The same as ``description``, so that `localizedDescription` is.
  public var errorDescription: String? { description }

  /// What happened, to which entry or store, and what can be done, in sentences for people.
  ///
  /// It may name the key and the cache, never the value.
  public var description: String {
    switch self {
    case .encoding(let key, let error):
      "The value for key \"\(key)\" could not be encoded; nothing was saved: \(stopped(error))"
    case .undecodable(let key, let error):
      """
      The value of key "\(key)" could not be decoded: \(stopped(error)) Save or remove the key, or \
      call validate(), which deletes such entries.
      """
    case .newerSchema(let found, let known):
      """
      The entry has schema version \(found); this program knows versions up to \(known). It is \
      kept for the program that wrote it. Update this program, or remove the key; to save over \
      such entries, open the cache with overwritesNewer: true.
      """
    case .corrupt(let cache, let key, let file):
      Self.describeCorruption(cache: cache, key: key, file: file)
    case .locked(let pid?):
      "The store is open elsewhere, in process \(pid). Close it there first."
    case .locked(nil): "The store is open elsewhere. Close it there first."
    case .diskFull:
      """
      The file system is full. Make room, or remove entries. A store that cannot be opened for \
      that reason can be read with Options.access = .readOnly.
      """
    case .readOnly(let cause): "The store cannot be written to: \(stopped(cause))"
    case .writesDisabled(let cause):
      "Writing is disabled since a write failed: \(stopped(cause)) The next write tries again."
    case .budgetExceeded(let bytes, let budget):
      "\(bytes) bytes are over the budget of \(budget) bytes, and nothing can be evicted."
    case .closed: "The store is closed. Open it again."
    case .io(let message): "The store could not be read or written: \(stopped(message))"
    case .incompatible(let message):
      "The store cannot be used by this version: \(stopped(message))"
    case .invalidArgument(let message): "Not allowed: \(stopped(message))"
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

/// An error or a message in words, with a full stop at its end.
private func stopped(_ words: Any) -> String {
  let text = "\(words)"
  return text.hasSuffix(".") ? text : text + "."
}

extension StoreError {
  /// The same failure in users' words.
  ///
  /// `cache` and `key` say what was being read, if anything was.
  init(_ error: EngineError, cache: String = "", key: String = "") {
    switch error {
    case .closed: self = .closed
    case .locked(let pid): self = .locked(pid: pid)
    case .diskFull: self = .diskFull
    case .writesDisabled(let cause): self = .writesDisabled(cause: cause)
    case .readOnly(let cause): self = .readOnly(cause: cause)
    case .io(let message): self = .io(message)
    case .corrupt(let message): self = .corrupt(cache: cache, key: key, file: message)
    case .incompatible(let message): self = .incompatible(message)
    case .invalidArgument(let message): self = .invalidArgument(message)
    case .overBudget(let shortage):
      self = .budgetExceeded(bytes: shortage.limit + shortage.excess, budget: shortage.limit)
    }
  }
}
