import Synchronization
package import LarderBytes

extension Binary {
  /// Appends the payload of a value to `buffer`, which is left as it was if that fails.
  ///
  /// A type whose `encode(to:)` throws, or fills its containers out of order, is asked to encode
  /// itself a second time.
  ///
  /// - Throws: An `EncodingError`, or what the type's own `encode(to:)` throws.
  /// - Complexity: O(n) in the bytes.
  package static func encode<V: Encodable>(_ value: V, into buffer: inout ByteBuffer) throws {
    var stream = spare.withLock { spare in
      defer { spare = nil }
      return spare ?? Stream()
    }
    guard stream.write(value, into: &buffer) else {
      return try encodeByTree(value, into: &buffer)
    }
    // An encoder that outlives the call has its stream.
    guard isKnownUniquelyReferenced(&stream), stream.reset() else { return }
    let free = stream
    spare.withLock { $0 = free }
  }

  /// A stream that nobody uses: it has its room, and knows the shapes of what it has written.
  private static let spare = Mutex<Stream?>(nil)

  /// The same, by way of a tree.
  static func encodeByTree<V: Encodable>(_ value: V, into buffer: inout ByteBuffer) throws {
    let state = TreeState()
    let tree = try state.tree(value, path: [])
    if let fault = state.fault { throw fault }
    try TreeWriter.write(tree, to: &buffer)
  }
}
