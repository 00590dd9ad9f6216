extension Binary {
  /// Appends the payload of a value to `buffer`, which is left as it was if that fails.
  ///
  /// A type whose `encode(to:)` throws, or fills its containers out of order, is asked to encode
  /// itself a second time.
  ///
  /// - Throws: An `EncodingError`, or what the type's own `encode(to:)` throws.
  /// - Complexity: O(n) in the bytes.
  package static func encode<V: Encodable>(_ value: V, into buffer: inout [UInt8]) throws {
    let stream = Stream()
    if stream.write(value) {
      stream.bytes.withBytes { buffer.append(contentsOf: $0) }
    } else {
      try encodeByTree(value, into: &buffer)
    }
  }

  /// The same, by way of a tree.
  static func encodeByTree<V: Encodable>(_ value: V, into buffer: inout [UInt8]) throws {
    let state = TreeState()
    let tree = try state.tree(value, path: [])
    if let fault = state.fault { throw fault }
    let bytes = ByteBuffer()
    try TreeWriter.write(tree, to: bytes)
    bytes.withBytes { buffer.append(contentsOf: $0) }
  }
}
