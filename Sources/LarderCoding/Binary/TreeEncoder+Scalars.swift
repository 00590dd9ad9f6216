// The container protocols' requirements for single types. All of them make the same generic call.

extension TreeFields {
  mutating func encode(_ value: Bool, forKey key: Key) throws { try put(.scalar(value), key) }
  mutating func encode(_ value: String, forKey key: Key) throws { try put(.scalar(value), key) }
  mutating func encode(_ value: Double, forKey key: Key) throws { try put(.scalar(value), key) }
  mutating func encode(_ value: Float, forKey key: Key) throws { try put(.scalar(value), key) }
  mutating func encode(_ value: Int, forKey key: Key) throws { try put(.scalar(value), key) }
  mutating func encode(_ value: Int8, forKey key: Key) throws { try put(.scalar(value), key) }
  mutating func encode(_ value: Int16, forKey key: Key) throws { try put(.scalar(value), key) }
  mutating func encode(_ value: Int32, forKey key: Key) throws { try put(.scalar(value), key) }
  mutating func encode(_ value: Int64, forKey key: Key) throws { try put(.scalar(value), key) }
  mutating func encode(_ value: Int128, forKey key: Key) throws { try put(.scalar(value), key) }
  mutating func encode(_ value: UInt, forKey key: Key) throws { try put(.scalar(value), key) }
  mutating func encode(_ value: UInt8, forKey key: Key) throws { try put(.scalar(value), key) }
  mutating func encode(_ value: UInt16, forKey key: Key) throws { try put(.scalar(value), key) }
  mutating func encode(_ value: UInt32, forKey key: Key) throws { try put(.scalar(value), key) }
  mutating func encode(_ value: UInt64, forKey key: Key) throws { try put(.scalar(value), key) }
  mutating func encode(_ value: UInt128, forKey key: Key) throws { try put(.scalar(value), key) }
  mutating func encodeIfPresent(_ value: Bool?, forKey key: Key) throws {
    try put(optional: value, key)
  }
  mutating func encodeIfPresent(_ value: String?, forKey key: Key) throws {
    try put(optional: value, key)
  }
  mutating func encodeIfPresent(_ value: Double?, forKey key: Key) throws {
    try put(optional: value, key)
  }
  mutating func encodeIfPresent(_ value: Float?, forKey key: Key) throws {
    try put(optional: value, key)
  }
  mutating func encodeIfPresent(_ value: Int?, forKey key: Key) throws {
    try put(optional: value, key)
  }
  mutating func encodeIfPresent(_ value: Int8?, forKey key: Key) throws {
    try put(optional: value, key)
  }
  mutating func encodeIfPresent(_ value: Int16?, forKey key: Key) throws {
    try put(optional: value, key)
  }
  mutating func encodeIfPresent(_ value: Int32?, forKey key: Key) throws {
    try put(optional: value, key)
  }
  mutating func encodeIfPresent(_ value: Int64?, forKey key: Key) throws {
    try put(optional: value, key)
  }
  mutating func encodeIfPresent(_ value: Int128?, forKey key: Key) throws {
    try put(optional: value, key)
  }
  mutating func encodeIfPresent(_ value: UInt?, forKey key: Key) throws {
    try put(optional: value, key)
  }
  mutating func encodeIfPresent(_ value: UInt8?, forKey key: Key) throws {
    try put(optional: value, key)
  }
  mutating func encodeIfPresent(_ value: UInt16?, forKey key: Key) throws {
    try put(optional: value, key)
  }
  mutating func encodeIfPresent(_ value: UInt32?, forKey key: Key) throws {
    try put(optional: value, key)
  }
  mutating func encodeIfPresent(_ value: UInt64?, forKey key: Key) throws {
    try put(optional: value, key)
  }
  mutating func encodeIfPresent(_ value: UInt128?, forKey key: Key) throws {
    try put(optional: value, key)
  }
}

extension TreeElements {
  mutating func encode(_ value: Bool) throws { try add(.scalar(value)) }
  mutating func encode(_ value: String) throws { try add(.scalar(value)) }
  mutating func encode(_ value: Double) throws { try add(.scalar(value)) }
  mutating func encode(_ value: Float) throws { try add(.scalar(value)) }
  mutating func encode(_ value: Int) throws { try add(.scalar(value)) }
  mutating func encode(_ value: Int8) throws { try add(.scalar(value)) }
  mutating func encode(_ value: Int16) throws { try add(.scalar(value)) }
  mutating func encode(_ value: Int32) throws { try add(.scalar(value)) }
  mutating func encode(_ value: Int64) throws { try add(.scalar(value)) }
  mutating func encode(_ value: Int128) throws { try add(.scalar(value)) }
  mutating func encode(_ value: UInt) throws { try add(.scalar(value)) }
  mutating func encode(_ value: UInt8) throws { try add(.scalar(value)) }
  mutating func encode(_ value: UInt16) throws { try add(.scalar(value)) }
  mutating func encode(_ value: UInt32) throws { try add(.scalar(value)) }
  mutating func encode(_ value: UInt64) throws { try add(.scalar(value)) }
  mutating func encode(_ value: UInt128) throws { try add(.scalar(value)) }
}

extension TreeEncoder {
  func encode(_ value: Bool) throws { try put(.scalar(value)) }
  func encode(_ value: String) throws { try put(.scalar(value)) }
  func encode(_ value: Double) throws { try put(.scalar(value)) }
  func encode(_ value: Float) throws { try put(.scalar(value)) }
  func encode(_ value: Int) throws { try put(.scalar(value)) }
  func encode(_ value: Int8) throws { try put(.scalar(value)) }
  func encode(_ value: Int16) throws { try put(.scalar(value)) }
  func encode(_ value: Int32) throws { try put(.scalar(value)) }
  func encode(_ value: Int64) throws { try put(.scalar(value)) }
  func encode(_ value: Int128) throws { try put(.scalar(value)) }
  func encode(_ value: UInt) throws { try put(.scalar(value)) }
  func encode(_ value: UInt8) throws { try put(.scalar(value)) }
  func encode(_ value: UInt16) throws { try put(.scalar(value)) }
  func encode(_ value: UInt32) throws { try put(.scalar(value)) }
  func encode(_ value: UInt64) throws { try put(.scalar(value)) }
  func encode(_ value: UInt128) throws { try put(.scalar(value)) }
}
