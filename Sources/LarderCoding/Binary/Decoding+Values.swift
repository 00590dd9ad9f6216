import Foundation
import Synchronization

/// Whether a type is a list, by type; the dynamic cast takes longer than decoding a small value.
private let listTypes = Mutex<[ObjectIdentifier: Bool]>([:])

/// A type that is decoded without a decoder of its own.
enum CommonType { case string, url, uuid, date, data, integers, doubles }

/// A list type that is decoded without an unkeyed container.
protocol WireList {
  /// Reads the list that `decoder` holds.
  static func read(from decoder: ValueDecoder) throws -> Self
}

extension ValueDecoder {
  func child(_ place: Place, _ name: Name) -> ValueDecoder {
    ValueDecoder(payload, place, depth: depth + 1, parent: self, name: name)
  }

  /// Decodes a value within this one, and sets `end` to where it ends if that is known.
  func decode<T: Decodable>(_ place: Place, name: Name, end: inout Int?) throws -> T {
    var last: ValueDecoder?
    return try decode(place, name: name, end: &end, again: &last)
  }

  /// Decodes a value within this one, and sets `end` to where it ends if that is known.
  ///
  /// `again` holds the decoder of the previous element, for reuse.
  func decode<T: Decodable>(
    _ place: Place, name: Name, end: inout Int?, again: inout ValueDecoder?
  ) throws -> T {
    if let type = commonType(T.self, at: place) {
      return try read(type, place, name, &end, depth: depth + 1)
    }
    let value: T = try composite(child(place, name, again: &again))
    end = payload.knownEnd(of: place, depth: depth + 1)
    return value
  }

  /// Returns the decoder of an element, reusing the previous element's unless it is still in use.
  func child(_ place: Place, _ name: Name, again: inout ValueDecoder?) -> ValueDecoder {
    if case .index(let index) = name, isKnownUniquelyReferenced(&again), let free = again {
      free.move(to: place, index: index)
      return free
    }
    let decoder = child(place, name)
    again = decoder
    return decoder
  }

  /// Whether a type is decoded by its own `init(from:)` only.
  func decodesItself<T>(_ type: T.Type) -> Bool {
    T.self != String.self && T.self != URL.self && T.self != UUID.self && T.self != Date.self
      && T.self != Data.self && listType(T.self) == nil
  }

  /// Decodes a value of a type without a ``Kind`` of its own, through `Codable` even if it
  /// `isItself` a part.
  func composite<T: Decodable>(_ decoder: ValueDecoder, isItself: Bool = false) throws -> T {
    if !isItself, let part = payload.parts?.part(of: T.self) {
      do { return try decoder.read(by: part) } catch { payload.refuseParts() }
    }
    if T.self == [Int].self { return same(try [Int].read(from: decoder)) }
    if T.self == [Double].self { return same(try [Double].read(from: decoder)) }
    if T.self == [String].self { return same(try [String].read(from: decoder)) }
    if let list = listType(T.self), let elements = try list.read(from: decoder) as? T {
      return elements
    }
    return try T(from: decoder)
  }

  /// Returns how a value of a type is decoded; nil for a type that needs a decoder of its own.
  ///
  /// It is asked before the value is decoded, because generic code looks up the type of an
  /// optional value with each call.
  @inline(__always)
  func commonType<T>(_ type: T.Type, at place: Place) -> CommonType? {
    if T.self == String.self { return .string }
    // A URL with a base is stored as an object.
    if T.self == URL.self { return place.kind == .object || place.kind == .map ? nil : .url }
    if T.self == UUID.self { return .uuid }
    if T.self == Date.self { return .date }
    if T.self == Data.self { return .data }
    if T.self == [Int].self { return payload.isNumberList(Int.self, place) ? .integers : nil }
    if T.self == [Double].self { return payload.isNumberList(Double.self, place) ? .doubles : nil }
    return nil
  }

  /// Decodes a value of a common type, which must be `T`, and sets `end` to where it ends.
  private func read<T>(
    _ type: CommonType, _ place: Place, _ name: Name, _ end: inout Int?, depth: Int
  ) throws -> T {
    switch type {
    case .string: try read(String.self, place, name, &end)
    case .url: try read(URL.self, place, name, &end)
    case .uuid: try read(UUID.self, place, name, &end)
    case .date: try read(Date.self, place, name, &end)
    case .data: try read(Data.self, place, name, &end)
    case .integers: same(try numbers(place, name, &end, depth) as [Int])
    case .doubles: same(try numbers(place, name, &end, depth) as [Double])
    }
  }

  /// Decodes this decoder's own value, of a common type, which must be `T`.
  func read<T>(_ type: CommonType) throws -> T {
    var end: Int?
    let value: T = try read(type, place, .root, &end, depth: depth)
    if let end { payload.finish(place.offset, depth: depth, end: end) }
    return value
  }

  private func numbers<Number>(
    _ place: Place, _ name: Name, _ end: inout Int?, _ depth: Int
  ) throws -> [Number] {
    do throws(Fault) {
      try payload.checkDepth(depth)
      var offset = place.offset
      let numbers: [Number] = try payload.valueBytes.numbers(at: &offset)
      end = offset
      return numbers
    } catch {
      throw self.error(error, [Number].self, below: name)
    }
  }

  private func read<S: WireScalar, T>(
    _ type: S.Type, _ place: Place, _ name: Name, _ end: inout Int?
  ) throws -> T {
    do throws(Fault) {
      var offset = 0
      let value = try S.read(payload, place, end: &offset)
      end = offset
      return same(value)
    } catch {
      throw self.error(error, S.self, below: name)
    }
  }

  /// Returns `type` as a list type, nil if it is not one; the result is cached.
  private func listType(_ type: Any.Type) -> (any WireList.Type)? {
    let id = ObjectIdentifier(type)
    if payload.lastListType.type == id { return payload.lastListType.list }
    let known = listTypes.withLock { $0[id] }
    let list = known == false ? nil : type as? any WireList.Type
    if known == nil {
      let isList = list != nil
      listTypes.withLock { $0[id] = isList }
    }
    payload.lastListType = (id, list)
    return list
  }
}

extension Array: WireList where Element: Decodable {
  static func read(from decoder: ValueDecoder) throws -> [Element] {
    if let numbers = try readNumbers(from: decoder) { return numbers }
    var elements = try Elements(decoder)
    var array: [Element] = []
    // Elements may need more memory than their bytes, so a hostile count must not reserve it all.
    array.reserveCapacity(Swift.min(elements.count ?? 0, 1024))
    if decoder.decodesItself(Element.self) {
      while !elements.isAtEnd { array.append(try elements.decodeItself()) }
    } else {
      while !elements.isAtEnd { array.append(try elements.decode(Element.self)) }
    }
    return array
  }

  /// Copies numbers whose encoding equals their memory layout; nil for any other list.
  private static func readNumbers(from decoder: ValueDecoder) throws -> [Element]? {
    guard let kind = numberKind(of: Element.self), decoder.place.kind == .list else { return nil }
    do throws(Fault) {
      let payload = decoder.payload
      let type = try payload.elementType(of: decoder.place)
      guard type.kind == kind, !type.isOptional else { return nil }
      try payload.checkDepth(decoder.depth)
      var end = decoder.place.offset
      let numbers: [Element] = try payload.valueBytes.numbers(at: &end)
      payload.finish(decoder.place.offset, depth: decoder.depth, end: end)
      return numbers
    } catch {
      throw decoder.error(error, [Element].self)
    }
  }
}

/// The kind of a number type whose memory layout equals its encoding; nil for any other type.
func numberKind(of type: Any.Type) -> Kind? {
  // An array of 64-bit numbers is an array of `Int` only where `Int` has 64 bits.
  guard 1.littleEndian == 1, MemoryLayout<Int>.size == 8 else { return nil }
  if type == Int.self || type == Int64.self { return .int64 }
  if type == Double.self { return .double }
  if type == Float.self { return .float }
  if type == UInt8.self { return .uint8 }
  if type == Int32.self { return .int32 }
  if type == UInt32.self { return .uint32 }
  if type == UInt.self || type == UInt64.self { return .uint64 }
  return nil
}

// MARK: - Decoding a payload

extension Binary {
  /// Decodes a value from a whole payload.
  ///
  /// Values of types that `parts` knows are read without `Codable`.
  ///
  /// - Throws: A `DecodingError`, or an error from the type's own `init(from:)`.
  package static func decode<V: Decodable>(
    _ type: V.Type, from bytes: RawSpan, parts: (any StreamParts.Type)? = nil
  ) throws -> V {
    try bytes.withUnsafeBytes { bytes in
      var payload: Payload
      let place: Place
      do throws(Fault) {
        payload = try Payload(bytes)
        payload.use(parts)
        place = try payload.tagged(at: headBytes)
      } catch {
        throw DecodingError.dataCorrupted(
          DecodingError.Context(codingPath: [], debugDescription: error.description))
      }
      // A decoder that outlives the call needs bytes that do so, too.
      defer { if !isKnownUniquelyReferenced(&payload) { payload.keepBytes() } }
      return try decode(payload, place, depth: 1)
    }
  }

  /// Decodes the value at `place`, through `Codable` even if it `isItself` a part.
  ///
  /// Not inlined, so that the decoder made here is released before the caller checks whether
  /// another decoder still holds the payload.
  @inline(never)
  static func decode<V: Decodable>(
    _ payload: Payload, _ place: Place, depth: Int, isItself: Bool = false
  ) throws -> V {
    let decoder = ValueDecoder(payload, place, depth: depth, parent: nil, name: .root)
    if isItself { return try decoder.composite(decoder, isItself: true) }
    if let type = decoder.commonType(V.self, at: place) { return try decoder.read(type) }
    return try decoder.composite(decoder)
  }
}
