import Foundation

/// The fields of an object or the entries of a map.
struct KeyedFields<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let link: FieldsLink

  @inline(__always)
  private var value: ValueReader { link.value }

  var codingPath: [any CodingKey] { value.codingPath }

  var allKeys: [Key] {
    // Not `compactMap` and `filter`, which look up generic types for each key.
    var keys: [Key] = []
    for name in value.fieldNames {
      if let key = Key(stringValue: name), contains(key) { keys.append(key) }
    }
    return keys
  }

  func contains(_ key: Key) -> Bool {
    do throws(Fault) {
      return try value.field(key.stringValue) != nil
    } catch {
      // An unreadable field is present; decoding it throws.
      return true
    }
  }

  /// Finds a field.
  @inline(__always)
  private func find(_ key: Key, _ type: Any.Type) throws -> ValueReader.Field? {
    do throws(Fault) {
      return try value.field(key.stringValue)
    } catch {
      throw failure(error, type, key)
    }
  }

  @inline(never)
  private func failure(_ fault: Fault, _ type: Any.Type, _ key: Key) -> DecodingError {
    value.error(fault, type, below: .key(key))
  }

  @inline(never)
  private func missing(_ key: Key) -> DecodingError {
    .keyNotFound(
      key,
      DecodingError.Context(
        codingPath: codingPath, debugDescription: "No value for the key \(key.stringValue)"))
  }

  func decodeNil(forKey key: Key) throws -> Bool {
    guard let (index, place) = try find(key, Never.self) else { throw missing(key) }
    guard place.kind == .null else { return false }
    value.finishField(index, end: place.offset)
    return true
  }

  // MARK: - Scalars

  @inline(__always)
  func scalar<S: WireScalar>(_ key: Key) throws -> S {
    do throws(Fault) {
      if let scalar: S = try value.scalar(key.stringValue) { return scalar }
    } catch {
      throw failure(error, S.self, key)
    }
    throw missing(key)
  }

  @inline(__always)
  private func optionalScalar<S: WireScalar>(_ key: Key) throws -> S? {
    do throws(Fault) {
      return try value.optionalScalar(key.stringValue)
    } catch {
      throw failure(error, S.self, key)
    }
  }

  func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
    try optionalScalar(key)
  }
  func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
    try optionalScalar(key)
  }
  func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
    try optionalScalar(key)
  }
  func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
    try optionalScalar(key)
  }

  // MARK: - Other values

  func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
    guard let (index, place) = try find(key, T.self) else { throw missing(key) }
    return try decode(key, index, place)
  }

  func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
    guard let (index, place) = try findOptional(key, T.self) else { return nil }
    return try decode(key, index, place) as T
  }

  /// Finds an optional field; nil if it is absent or null.
  @inline(__always)
  private func findOptional(_ key: Key, _ type: Any.Type) throws -> ValueReader.Field? {
    do throws(Fault) {
      return try value.optionalField(key.stringValue)
    } catch {
      throw failure(error, type, key)
    }
  }

  @inline(__always)
  private func decode<T: Decodable>(_ key: Key, _ index: Int, _ place: WirePlace) throws -> T {
    let form = value.form(of: T.self, at: place)
    guard form.isScalar else { return try decode(form, key, index, place) }
    let value = value
    var end: Int?
    defer { if let end { value.finishField(index, end: end) } }
    do throws(Fault) {
      return try value.scalar(form, place, end: &end)
    } catch {
      throw failure(error, T.self, key)
    }
  }

  @inline(never)
  private func decode<T: Decodable>(
    _ form: DecodableForm, _ key: Key, _ index: Int, _ place: WirePlace
  ) throws -> T {
    let value = value
    // The value may have been read to its end also if its type throws afterwards.
    defer { value.finishField(index, after: place) }
    return try value.decode(form, place, .key(key), depth: value.depth + 1)
  }

  private func child(_ key: Key) throws -> ValueDecoder {
    guard let (_, place) = try find(key, Any.self) else { throw missing(key) }
    return value.child(place, .key(key))
  }

  func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<NestedKey> { try child(key).container(keyedBy: type) }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try child(key).unkeyedContainer()
  }

  /// The decoder of the field `super`, or of a null value if the field is missing.
  func superDecoder() throws -> any Decoder {
    let key = PathKey(stringValue: "super")
    do throws(Fault) {
      return value.child(try value.field(key.stringValue)?.place ?? .null, .key(key))
    } catch {
      throw value.error(error, (any Decoder).self, below: .key(key))
    }
  }

  func superDecoder(forKey key: Key) throws -> any Decoder {
    value.child(try find(key, (any Decoder).self)?.place ?? .null, .key(key))
  }
}

extension WirePlace {
  /// A null value without a position in the payload.
  static var null: WirePlace { WirePlace(kind: .null, argument: 0, offset: 0) }
}
