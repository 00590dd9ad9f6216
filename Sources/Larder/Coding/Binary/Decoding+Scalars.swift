// The container protocols' requirements for single types. All of them make the same generic call.

extension KeyedFields {
  func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try scalar(key) }
  func decode(_ type: String.Type, forKey key: Key) throws -> String { try scalar(key) }
  func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try scalar(key) }
  func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try scalar(key) }
  func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try scalar(key) }
  func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try scalar(key) }
  func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try scalar(key) }
  func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try scalar(key) }
  func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try scalar(key) }
  func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 { try scalar(key) }
  func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try scalar(key) }
  func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try scalar(key) }
  func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try scalar(key) }
  func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try scalar(key) }
  func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try scalar(key) }
  func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 { try scalar(key) }
}

extension Elements {
  mutating func decode(_ type: Bool.Type) throws -> Bool { try scalar() }
  mutating func decode(_ type: String.Type) throws -> String { try scalar() }
  mutating func decode(_ type: Double.Type) throws -> Double { try scalar() }
  mutating func decode(_ type: Float.Type) throws -> Float { try scalar() }
  mutating func decode(_ type: Int.Type) throws -> Int { try scalar() }
  mutating func decode(_ type: Int8.Type) throws -> Int8 { try scalar() }
  mutating func decode(_ type: Int16.Type) throws -> Int16 { try scalar() }
  mutating func decode(_ type: Int32.Type) throws -> Int32 { try scalar() }
  mutating func decode(_ type: Int64.Type) throws -> Int64 { try scalar() }
  mutating func decode(_ type: Int128.Type) throws -> Int128 { try scalar() }
  mutating func decode(_ type: UInt.Type) throws -> UInt { try scalar() }
  mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try scalar() }
  mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try scalar() }
  mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try scalar() }
  mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try scalar() }
  mutating func decode(_ type: UInt128.Type) throws -> UInt128 { try scalar() }
}

extension ValueDecoder {
  func decode(_ type: Bool.Type) throws -> Bool { try scalar() }
  func decode(_ type: String.Type) throws -> String { try scalar() }
  func decode(_ type: Double.Type) throws -> Double { try scalar() }
  func decode(_ type: Float.Type) throws -> Float { try scalar() }
  func decode(_ type: Int.Type) throws -> Int { try scalar() }
  func decode(_ type: Int8.Type) throws -> Int8 { try scalar() }
  func decode(_ type: Int16.Type) throws -> Int16 { try scalar() }
  func decode(_ type: Int32.Type) throws -> Int32 { try scalar() }
  func decode(_ type: Int64.Type) throws -> Int64 { try scalar() }
  func decode(_ type: Int128.Type) throws -> Int128 { try scalar() }
  func decode(_ type: UInt.Type) throws -> UInt { try scalar() }
  func decode(_ type: UInt8.Type) throws -> UInt8 { try scalar() }
  func decode(_ type: UInt16.Type) throws -> UInt16 { try scalar() }
  func decode(_ type: UInt32.Type) throws -> UInt32 { try scalar() }
  func decode(_ type: UInt64.Type) throws -> UInt64 { try scalar() }
  func decode(_ type: UInt128.Type) throws -> UInt128 { try scalar() }
}
