// The container protocols' requirements for single types. All of them make the same generic call.

extension StreamFields {
  mutating func encode(_ value: Bool, forKey key: Key) throws { try scalar(value, key) }
  mutating func encode(_ value: String, forKey key: Key) throws { try scalar(value, key) }
  mutating func encode(_ value: Double, forKey key: Key) throws { try scalar(value, key) }
  mutating func encode(_ value: Float, forKey key: Key) throws { try scalar(value, key) }
  mutating func encode(_ value: Int, forKey key: Key) throws { try scalar(value, key) }
  mutating func encode(_ value: Int8, forKey key: Key) throws { try scalar(value, key) }
  mutating func encode(_ value: Int16, forKey key: Key) throws { try scalar(value, key) }
  mutating func encode(_ value: Int32, forKey key: Key) throws { try scalar(value, key) }
  mutating func encode(_ value: Int64, forKey key: Key) throws { try scalar(value, key) }
  mutating func encode(_ value: Int128, forKey key: Key) throws { try scalar(value, key) }
  mutating func encode(_ value: UInt, forKey key: Key) throws { try scalar(value, key) }
  mutating func encode(_ value: UInt8, forKey key: Key) throws { try scalar(value, key) }
  mutating func encode(_ value: UInt16, forKey key: Key) throws { try scalar(value, key) }
  mutating func encode(_ value: UInt32, forKey key: Key) throws { try scalar(value, key) }
  mutating func encode(_ value: UInt64, forKey key: Key) throws { try scalar(value, key) }
  mutating func encode(_ value: UInt128, forKey key: Key) throws { try scalar(value, key) }
  mutating func encodeIfPresent(_ value: Bool?, forKey key: Key) throws {
    try optional(value, key)
  }
  mutating func encodeIfPresent(_ value: String?, forKey key: Key) throws {
    try optional(value, key)
  }
  mutating func encodeIfPresent(_ value: Double?, forKey key: Key) throws {
    try optional(value, key)
  }
  mutating func encodeIfPresent(_ value: Float?, forKey key: Key) throws {
    try optional(value, key)
  }
  mutating func encodeIfPresent(_ value: Int?, forKey key: Key) throws {
    try optional(value, key)
  }
  mutating func encodeIfPresent(_ value: Int8?, forKey key: Key) throws {
    try optional(value, key)
  }
  mutating func encodeIfPresent(_ value: Int16?, forKey key: Key) throws {
    try optional(value, key)
  }
  mutating func encodeIfPresent(_ value: Int32?, forKey key: Key) throws {
    try optional(value, key)
  }
  mutating func encodeIfPresent(_ value: Int64?, forKey key: Key) throws {
    try optional(value, key)
  }
  mutating func encodeIfPresent(_ value: Int128?, forKey key: Key) throws {
    try optional(value, key)
  }
  mutating func encodeIfPresent(_ value: UInt?, forKey key: Key) throws {
    try optional(value, key)
  }
  mutating func encodeIfPresent(_ value: UInt8?, forKey key: Key) throws {
    try optional(value, key)
  }
  mutating func encodeIfPresent(_ value: UInt16?, forKey key: Key) throws {
    try optional(value, key)
  }
  mutating func encodeIfPresent(_ value: UInt32?, forKey key: Key) throws {
    try optional(value, key)
  }
  mutating func encodeIfPresent(_ value: UInt64?, forKey key: Key) throws {
    try optional(value, key)
  }
  mutating func encodeIfPresent(_ value: UInt128?, forKey key: Key) throws {
    try optional(value, key)
  }
}

extension StreamElements {
  mutating func encode(_ value: Bool) throws { try scalar(value) }
  mutating func encode(_ value: String) throws { try scalar(value) }
  mutating func encode(_ value: Double) throws { try scalar(value) }
  mutating func encode(_ value: Float) throws { try scalar(value) }
  mutating func encode(_ value: Int) throws { try scalar(value) }
  mutating func encode(_ value: Int8) throws { try scalar(value) }
  mutating func encode(_ value: Int16) throws { try scalar(value) }
  mutating func encode(_ value: Int32) throws { try scalar(value) }
  mutating func encode(_ value: Int64) throws { try scalar(value) }
  mutating func encode(_ value: Int128) throws { try scalar(value) }
  mutating func encode(_ value: UInt) throws { try scalar(value) }
  mutating func encode(_ value: UInt8) throws { try scalar(value) }
  mutating func encode(_ value: UInt16) throws { try scalar(value) }
  mutating func encode(_ value: UInt32) throws { try scalar(value) }
  mutating func encode(_ value: UInt64) throws { try scalar(value) }
  mutating func encode(_ value: UInt128) throws { try scalar(value) }
}

extension StreamEncoder {
  func encode(_ value: Bool) throws { try scalar(value) }
  func encode(_ value: String) throws { try scalar(value) }
  func encode(_ value: Double) throws { try scalar(value) }
  func encode(_ value: Float) throws { try scalar(value) }
  func encode(_ value: Int) throws { try scalar(value) }
  func encode(_ value: Int8) throws { try scalar(value) }
  func encode(_ value: Int16) throws { try scalar(value) }
  func encode(_ value: Int32) throws { try scalar(value) }
  func encode(_ value: Int64) throws { try scalar(value) }
  func encode(_ value: Int128) throws { try scalar(value) }
  func encode(_ value: UInt) throws { try scalar(value) }
  func encode(_ value: UInt8) throws { try scalar(value) }
  func encode(_ value: UInt16) throws { try scalar(value) }
  func encode(_ value: UInt32) throws { try scalar(value) }
  func encode(_ value: UInt64) throws { try scalar(value) }
  func encode(_ value: UInt128) throws { try scalar(value) }
}
