package import LarderBytes

extension Binary {
  /// Appends the payload of a value to `buffer`, which is unchanged if that fails.
  ///
  /// A type whose `encode(to:)` throws, or fills its containers out of order, is encoded a second
  /// time, by way of a tree.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - buffer: The buffer.
  ///   - parts: Knows the types that are written without `Codable`.
  /// - Throws: An `EncodingError`, or an error from the type's own `encode(to:)`.
  /// - Complexity: O(n) in the bytes.
  package static func encode<V: Encodable>(
    _ value: V, into buffer: inout ByteBuffer, parts: (any StreamParts.Type)? = nil
  ) throws {
    let writer = PayloadWriter.take(parts: parts)
    let isWritten = writer.write(value, into: &buffer)
    writer.giveBack()
    if !isWritten { try encodeByTree(value, into: &buffer) }
  }

  /// Appends the payload of a value to `buffer` by way of a ``Tree``.
  static func encodeByTree<V: Encodable>(_ value: V, into buffer: inout ByteBuffer) throws {
    let state = TreeState()
    let tree = try state.tree(value, path: [])
    if let failure = state.failure { throw failure }
    try TreeWriter.write(tree, to: &buffer)
  }
}
