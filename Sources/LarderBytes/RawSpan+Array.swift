extension Array<UInt8> {
  /// Copies the bytes of a span.
  @inlinable package init(_ bytes: RawSpan) {
    self = bytes.withUnsafeBytes { [UInt8]($0) }
  }
}
