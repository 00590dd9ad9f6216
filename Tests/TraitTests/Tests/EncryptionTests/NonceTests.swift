import Crypto
import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Nonces never repeat, whatever is sealed, and however often the store is opened.
@Suite(.timeLimit(.minutes(60))) struct NonceTests {
  @Test("Nonces are unique across openings.")
  func unique() throws {
    let count = isProof ? 100_000_000 : 100_000
    let openings = 20
    let sealed = try SealedStore()
    // By their first byte, because they may be more than memory holds at once.
    let nonces = try NonceFiles(in: sealed.directory.path("nonces"))
    let key = "k".recordKey(in: 1)
    var buffer = ByteBuffer()
    for _ in 0..<openings {
      try sealed.with { store in
        let seal = try #require(store.context.seal)
        let place = SealedPlace(ofValidatorUnder: key.bytes.span.bytes, in: "c")
        for _ in 0..<(count / openings) {
          buffer.truncate(to: 0)
          buffer.append(littleEndian: UInt64(7))
          try seal.seal(&buffer, from: 0, place)
          try buffer.withBytes { try nonces.add($0, from: SealedField.idBytes) }
        }
      }
    }
    #expect(try nonces.countUnique() == count)
    print("\(count) nonces")
  }

  @Test("A process that ends without closing the store does not seal with a nonce again.")
  func saved() throws {
    let sealed = try SealedStore()
    var seen: Set<[UInt8]> = []
    var dataKeys: Set<UInt32> = []
    for _ in 0..<10 {
      // As after a kill: the directory is copied while the store is open, and then the copy is
      // opened.
      let store = try sealed.open(.key(id: "1", key(1)))
      let cache = try store.cache("c", of: String.self, memory: .none)
      for _ in 0..<200 {
        try cache.save("same", for: "x")
        let place = "x".recordKey(in: cache.core.id).bytes
        let bytes = try #require(try store.engine.get(place.span.bytes))
        let record = try Record(bytes.span.bytes, under: place.span.bytes)
        let field = bytes[record.payload]
        #expect(seen.insert(Array(field.dropFirst(SealedField.idBytes).prefix(12))).inserted)
        dataKeys.insert(UInt32(field.first ?? 0))
      }
      let copy = sealed.directory.path("copy")
      try FileManager.default.copyItem(atPath: sealed.path, toPath: copy)
      try store.close()
      try FileManager.default.removeItem(atPath: sealed.path)
      try FileManager.default.moveItem(atPath: copy, toPath: sealed.path)
    }
    #expect(seen.count == 2000 && dataKeys == [1])
  }
}

/// Nonces in 64 files, by the first six bits.
private final class NonceFiles {
  private static let count = 64
  private let files: [(path: String, handle: FileHandle)]
  private var buffers: [[UInt8]]

  init(in directory: String) throws {
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: false)
    files = try (0..<Self.count).map { number in
      let path = "\(directory)/\(number)"
      FileManager.default.createFile(atPath: path, contents: nil)
      return (path, try FileHandle(forWritingTo: URL(filePath: path)))
    }
    buffers = Array(repeating: [], count: Self.count)
  }

  func add(_ field: UnsafeRawBufferPointer, from start: Int) throws {
    let nonce = field[start..<(start + 12)]
    let number = Int(nonce[start] >> 2)
    buffers[number] += nonce
    if buffers[number].count >= 12 << 10 { try flush(number) }
  }

  private func flush(_ number: Int) throws {
    try files[number].handle.write(contentsOf: buffers[number])
    buffers[number].removeAll(keepingCapacity: true)
  }

  /// The number of different nonces.
  func countUnique() throws -> Int {
    var unique = 0
    for number in files.indices {
      try flush(number)
      try files[number].handle.close()
      let bytes = try Data(contentsOf: URL(filePath: files[number].path))
      var nonces = bytes.withUnsafeBytes { bytes in
        stride(from: 0, to: bytes.count, by: 12).map { place in
          (
            bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self),
            bytes.loadUnaligned(fromByteOffset: place + 8, as: UInt32.self)
          )
        }
      }
      nonces.sort { $0 < $1 }
      unique += nonces.indices.count { $0 == 0 || nonces[$0 - 1] != nonces[$0] }
    }
    return unique
  }
}
