import Foundation

/// Reads the elements of a list, in order.
struct ListReader {
  let list: ValueReader
  private let type: WireType
  let total: Int
  private var offset: Int
  /// The index of the next element.
  private(set) var index = 0

  init(_ list: ValueReader) throws {
    self.list = list
    let place = list.place
    let payload = list.payload
    offset = place.offset
    do throws(Fault) {
      guard place.kind == .list else { throw .mismatch(found: place.kind) }
      try payload.pointee.checkDepth(list.depth)
      type = try payload.pointee.elementType(of: place)
      total = try payload.pointee.valueBytes.count(
        at: &offset, minimum: payload.pointee.minimumBytes(of: type))
    } catch {
      throw list.error(error, [Any].self)
    }
    if total == 0 { list.finish(end: offset) }
  }

  var isAtEnd: Bool { index >= total }

  /// The place of the next element; an absent element is null.
  @inline(__always)
  func next(_ wanted: Any.Type) throws -> WirePlace {
    guard index < total else { throw pastEnd(wanted) }
    do throws(Fault) {
      return try list.resolve(type, at: offset)
        ?? WirePlace(kind: .null, argument: 0, offset: offset + 1)
    } catch {
      throw list.error(error, wanted, below: .index(index))
    }
  }

  @inline(never)
  private func pastEnd(_ wanted: Any.Type) -> DecodingError {
    DecodingError.valueNotFound(
      wanted,
      DecodingError.Context(
        codingPath: list.codingPath + [PathKey(intValue: index)],
        debugDescription: "The list has no more elements"))
  }

  /// Moves behind the next element, which ends at `end`.
  @inline(__always)
  mutating func finish(end: Int) {
    offset = end
    index += 1
    if index == total { list.finish(end: end) }
  }

  /// Moves behind the next element, which is at `place`.
  @inline(__always)
  mutating func finish(after place: WirePlace) throws {
    if let end = list.payload.pointee.knownEnd(of: place, depth: list.depth + 1) {
      return finish(end: end)
    }
    finish(end: try end(of: place))
  }

  /// Finds the end of an element that was not read to its end.
  @inline(never)
  private func end(of place: WirePlace) throws -> Int {
    do throws(Fault) {
      return try list.payload.pointee.end(of: place, depth: list.depth + 1)
    } catch {
      throw list.error(error, Any.self, below: .index(index))
    }
  }
}

/// The elements of a list, for a type that decodes them itself.
struct Elements: UnkeyedDecodingContainer {
  private let decoder: ValueDecoder
  private var list: ListReader

  init(_ decoder: ValueDecoder) throws {
    self.decoder = decoder
    list = try ListReader(decoder.value)
  }

  var codingPath: [any CodingKey] { decoder.codingPath }
  var count: Int? { list.total }
  var isAtEnd: Bool { list.isAtEnd }
  var currentIndex: Int { list.index }

  mutating func decodeNil() throws -> Bool {
    let place = try list.next(Never.self)
    guard place.kind == .null else { return false }
    list.finish(end: place.offset)
    return true
  }

  mutating func scalar<S: WireScalar>() throws -> S {
    let place = try list.next(S.self)
    do throws(Fault) {
      var end = 0
      let value: S = try decoder.value.read(place, end: &end)
      list.finish(end: end)
      return value
    } catch {
      throw decoder.value.error(error, S.self, below: .index(currentIndex))
    }
  }

  mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
    let place = try list.next(T.self)
    let value: T = try decoder.value.decode(
      decoder.value.form(of: T.self), place, below: .index(currentIndex))
    try list.finish(after: place)
    return value
  }

  private mutating func child() throws -> ValueDecoder {
    let place = try list.next(Any.self)
    let child = decoder.value.child(place, .index(currentIndex))
    try list.finish(after: place)
    return child
  }

  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type
  ) throws -> KeyedDecodingContainer<NestedKey> { try child().container(keyedBy: type) }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try child().unkeyedContainer()
  }

  mutating func superDecoder() throws -> any Decoder { try child() }
}

// MARK: - Arrays

extension Array: WireList where Element: Decodable {
  static func read(from value: ValueReader) throws -> [Element] {
    if let numbers = try readNumbers(from: value) { return numbers }
    var list = try ListReader(value)
    let form = value.form(of: Element.self)
    // Elements may need more memory than their bytes, so a hostile count must not reserve it all.
    let count = Swift.min(list.total, 1024)
    // With a capacity of 0, the initializer would write to the empty array that all threads share.
    guard count > 0 else { return [] }
    var array = try [Element](unsafeUninitializedCapacity: count) { memory, initialized in
      guard let start = memory.baseAddress else { return }
      while initialized < count {
        let place = try list.next(Element.self)
        (start + initialized).initialize(
          to: try value.decode(form, place, below: .index(list.index)))
        initialized += 1
        try list.finish(after: place)
      }
    }
    while !list.isAtEnd {
      let place = try list.next(Element.self)
      array.append(try value.decode(form, place, below: .index(list.index)))
      try list.finish(after: place)
    }
    return array
  }

  /// Copies numbers whose encoding equals their memory layout; nil for any other list.
  private static func readNumbers(from value: ValueReader) throws -> [Element]? {
    guard let kind = numberKind(of: Element.self), value.place.kind == .list else { return nil }
    do throws(Fault) {
      let payload = value.payload
      let type = try payload.pointee.elementType(of: value.place)
      guard type.kind == kind, !type.isOptional else { return nil }
      try payload.pointee.checkDepth(value.depth)
      var end = value.place.offset
      let numbers: [Element] = try payload.pointee.valueBytes.numbers(at: &end)
      value.finish(end: end)
      return numbers
    } catch {
      throw value.error(error, [Element].self)
    }
  }
}

/// The kind of a number type whose memory layout equals its encoding; nil for any other type.
func numberKind(of type: Any.Type) -> WireKind? {
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
