import Crypto
import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// A text that is searched for in files; its halves are joined here, so that no other file has it.
let marker = "marker-" + "8d1f4c27-plain"

/// A key of the user whose bits depend on a number.
func key(_ number: UInt8) -> SymmetricKey {
  SymmetricKey(data: [UInt8](repeating: number, count: 32))
}

/// A directory with a store that is opened with different keys.
final class SealedStore {
  let directory: TemporaryDirectory
  let clock = ManualClock()
  var path: String { directory.path("store") }

  init() throws { directory = try TemporaryDirectory() }

  func open(
    _ encryption: Encryption?, access: Access = .readWrite,
    _ change: (inout Store.Options) -> Void = { _ in }
  ) throws -> Store {
    var options = Store.Options()
    options.clock = clock
    options.encryption = encryption
    options.access = access
    options.sweepInterval = nil
    change(&options)
    return try Store(at: URL(filePath: path), options: options)
  }

  /// Opens the store with key 1, and closes it afterwards.
  func with<R>(
    _ encryption: Encryption? = .key(id: "1", key(1)), _ body: (Store) throws -> R
  ) throws -> R {
    let store = try open(encryption)
    let result = try body(store)
    try store.close()
    return result
  }

  /// The error of opening with a key; nil if it opens.
  func error(opening encryption: Encryption?, access: Access = .readWrite) throws -> StoreError? {
    do {
      try open(encryption, access: access).close()
      return nil
    } catch let error as StoreError {
      return error
    }
  }

  /// The names of the files that have the marker in plaintext.
  func filesWithMarker() throws -> [String] {
    try Self.files(with: marker, in: directory.path)
  }

  static func files(with text: String, in directory: String) throws -> [String] {
    let names = try FileManager.default.subpathsOfDirectory(atPath: directory)
    return try names.sorted().filter { name in
      var isDirectory: ObjCBool = false
      let path = "\(directory)/\(name)"
      guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory),
        !isDirectory.boolValue
      else { return false }
      return try Data(contentsOf: URL(filePath: path)).range(of: Data(text.utf8)) != nil
    }
  }

  /// All files but those whose contents say who has the store open.
  func facts() throws -> [String: Data] {
    let names = try FileManager.default.contentsOfDirectory(atPath: path)
    return try Dictionary(
      uniqueKeysWithValues: names.filter { $0.hasPrefix("LARDER") && $0 != "LARDER.lock" }.map {
        ($0, try Data(contentsOf: URL(filePath: "\(path)/\($0)")))
      })
  }
}

extension StoreError {
  var isWrongKey: Bool {
    if case .wrongKey = self { return true }
    return false
  }
}

extension Lookup {
  /// The entry that was found, unless it is expired.
  var entry: Entry<Value>? {
    switch self {
    case .fresh(let entry), .stale(let entry): entry
    case .expired, .missing: nil
    }
  }
}
