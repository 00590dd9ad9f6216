import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Opening a directory returns a store or throws a typed error, and then changes nothing.
@Suite struct OpeningTests {
  @Test("A missing directory becomes a store.")
  func creates() throws {
    let place = try TemporaryDirectory()
    let missing = URL(filePath: place.path("new"))
    let store = try Store(at: missing)
    try store.cache("c", of: Int.self).save(1, for: "k")
    try store.close()

    #expect(try Store(at: missing).cache("c", of: Int.self).value(for: "k") == 1)
  }

  @Test("A store is not created without permission, or in a missing directory.")
  func createIfMissing() throws {
    let place = try TemporaryDirectory()
    var options = Store.Options()
    options.createIfMissing = false

    #expect(throwsIO { try Store(at: URL(filePath: place.path("new")), options: options) })
    #expect(throwsIO { try Store(at: URL(filePath: place.path("no/parent"))) })
    #expect(try FileManager.default.contentsOfDirectory(atPath: place.path).isEmpty)
  }

  @Test("A store in a folder for caches is created with the folders above it, for its owner only.")
  func inFolder() throws {
    let place = try TemporaryDirectory()
    let folder = URL(filePath: place.path("home/.cache"))
    try Store.inFolder(folder, "shop/feeds", options: Store.Options()).close()
    for path in ["home/.cache", "home/.cache/shop", "home/.cache/shop/feeds"] {
      let attributes = try FileManager.default.attributesOfItem(atPath: place.path(path))
      #expect(attributes[.posixPermissions] as? Int == 0o700, "\(path)")
    }
    #expect(try Store(at: URL(filePath: place.path("home/.cache/shop/feeds"))).cacheNames == [])
  }

  @Test("No folder is created above a store that is not, or whose name leads elsewhere.")
  func inFolderRefused() throws {
    let place = try TemporaryDirectory()
    let folder = URL(filePath: place.path("cache"))
    let long = String(repeating: "n", count: 256)
    for name in ["", "/a", "a/", "a//b", ".", "..", "a/../../b", "a\0b", "a/\(long)"] {
      #expect(
        throwsStoreError(where: { if case .invalidArgument = $0 { true } else { false } }) {
          try Store.inFolder(folder, name, options: Store.Options())
        }, "\(name)")
    }
    var (existing, readOnly) = (Store.Options(), Store.Options())
    existing.createIfMissing = false
    readOnly.access = .readOnly
    for options in [existing, readOnly] {
      #expect(throwsIO { try Store.inFolder(folder, "a/b", options: options) })
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: place.path).isEmpty)
    try Data().write(to: URL(filePath: place.path("file")))
    #expect(
      throwsIO {
        try Store.inFolder(URL(filePath: place.path("file")), "a/b", options: Store.Options())
      })
  }

  @Test("The folder for caches is the user's.")
  func inCaches() throws {
    let name = "larder-tests-\(UUID().uuidString)"
    let caches = try #require(
      FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first)
    let directory = caches.appending(path: name)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: directory) } }
    let store = try Store.inCaches("\(name)/store")
    let other = directory.appending(path: "store")
    #expect(
      throwsStoreError(where: { if case .locked = $0 { true } else { false } }) {
        try Store(at: other)
      })
    try store.close()
  }

  @Test("A directory is open once, whatever path names it.")
  func locked() throws {
    let place = try TemporaryDirectory()
    let path = place.path("store")
    let store = try Store(at: URL(filePath: path))
    try store.cache("c", of: Int.self).save(1, for: "k")
    try FileManager.default.createSymbolicLink(
      atPath: place.path("link"), withDestinationPath: path)

    for alias in [path, place.path("link"), place.path("store/../store/.")] {
      #expect(
        throwsStoreError(where: { if case .locked(getpid()) = $0 { true } else { false } }) {
          try Store(at: URL(filePath: alias))
        }, "\(alias)")
    }

    try store.close()
    #expect(
      try Store(at: URL(filePath: place.path("link"))).cache("c", of: Int.self).value(for: "k")
        == 1)
  }

  @Test("A store is closed with the last reference to it or its caches.")
  func lastReference() throws {
    let place = try TemporaryDirectory()
    let url = URL(filePath: place.path("store"))
    var cache: Cache<String, Int>? = try Store(at: url).cache("c", of: Int.self)
    #expect(
      throwsStoreError(where: { if case .locked = $0 { true } else { false } }) {
        try Store(at: url)
      })
    #expect(try cache?.value(for: "k") == nil)
    cache = nil
    try Store(at: url).close()
  }

  @Test("A file or a directory that is not a store is refused, unchanged.")
  func notAStore() throws {
    let place = try TemporaryDirectory()
    let file = place.path("file")
    try Data("x".utf8).write(to: URL(filePath: file))
    #expect(throwsIncompatible { try Store(at: URL(filePath: file)) })

    let before = try FileFacts.all(in: place.path)
    #expect(throwsIncompatible { try Store(at: URL(filePath: place.path)) })
    #expect(try FileFacts.all(in: place.path) == before)
  }

  @Test("Options out of range and URLs of other schemes are refused.")
  func outOfRange() throws {
    let place = try TemporaryDirectory()
    let url = URL(filePath: place.path("store"))
    let changes: [(inout Store.Options) -> Void] = [
      { $0.writeBufferBytes = 0 }, { $0.advanced.blockBytes = -1 },
      { $0.advanced.maxFileBytes = 1 },
      { $0.advanced.maxOpenFiles = 0 }, { $0.blockCacheBytes = -1 },
    ]
    for change in changes {
      var options = Store.Options()
      change(&options)
      #expect(throwsInvalidArgument { try Store(at: url, options: options) })
    }
    let remote = try #require(URL(string: "https://example.org/store"))
    #expect(throwsInvalidArgument { try Store(at: remote) })
    #expect(try FileManager.default.contentsOfDirectory(atPath: place.path).isEmpty)
  }

  private func throwsIO<R>(_ body: () throws -> R) -> Bool {
    throwsStoreError(where: { if case .io = $0 { true } else { false } }, body)
  }

  private func throwsIncompatible<R>(_ body: () throws -> R) -> Bool {
    throwsStoreError(where: { if case .incompatible = $0 { true } else { false } }, body)
  }
}
