import Foundation

/// A field name or element index, for the coding paths of errors.
struct PathKey: CodingKey {
  let stringValue: String
  let intValue: Int?

  init(stringValue: String) {
    self.stringValue = stringValue
    intValue = nil
  }

  init(intValue: Int) {
    stringValue = "Index \(intValue)"
    self.intValue = intValue
  }
}

/// Decodes one value, and is the parent of the decoders of the values within it.
///
/// It remembers the position in an object's fields, so that fields requested in their stored order
/// are read in one pass.
final class ValueDecoder: Decoder {
  enum Name {
    case root
    case key(any CodingKey)
    case index(Int)
  }

  let payload: Payload
  @exclusivity(unchecked)
  private(set) var place: Place
  /// The nesting level: the number of containers around the value, plus 1.
  let depth: Int
  private let parent: ValueDecoder?
  @exclusivity(unchecked) private var name: Name

  @exclusivity(unchecked) private var shape: Shape?
  @exclusivity(unchecked) private var entries: MapEntries?
  @exclusivity(unchecked) private var nextField = 0
  @exclusivity(unchecked) private var nextOffset = 0
  /// The offsets of the fields; empty until a field before the current position is requested.
  @exclusivity(unchecked) private var offsets: [Int] = []

  init(_ payload: Payload, _ place: Place, depth: Int, parent: ValueDecoder?, name: Name) {
    self.payload = payload
    self.place = place
    self.depth = depth
    self.parent = parent
    self.name = name
  }

  /// Reuses the decoder for another element of the same list.
  func move(to place: Place, index: Int) {
    self.place = place
    name = .index(index)
    shape = nil
    entries = nil
    nextField = 0
    offsets = []
  }

  var codingPath: [any CodingKey] {
    let path = parent?.codingPath ?? []
    switch name {
    case .root: return path
    case .key(let key): return path + [key]
    case .index(let index): return path + [PathKey(intValue: index)]
    }
  }

  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(
    keyedBy type: Key.Type
  ) throws -> KeyedDecodingContainer<Key> {
    try enterFields()
    return KeyedDecodingContainer(KeyedFields(decoder: self))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer { try Elements(self) }

  func singleValueContainer() throws -> any SingleValueDecodingContainer { self }
}

// MARK: - Errors

extension ValueDecoder {
  /// Makes the error for a fault at this value, or at the child named by `name`.
  func error(_ fault: Fault, _ type: Any.Type, below name: Name = .root) -> DecodingError {
    let path: [any CodingKey] =
      switch name {
      case .root: codingPath
      case .key(let key): codingPath + [key]
      case .index(let index): codingPath + [PathKey(intValue: index)]
      }
    func context(_ text: String) -> DecodingError.Context {
      DecodingError.Context(codingPath: path, debugDescription: text)
    }
    switch fault {
    case .malformed: return .dataCorrupted(context(fault.description))
    case .unsuitable(let reason): return .dataCorrupted(context("Not a \(type): \(reason)"))
    case .mismatch(found: .null): return .valueNotFound(type, context("Found null"))
    case .mismatch: return .typeMismatch(type, context(fault.description))
    }
  }
}

// MARK: - Fields

/// The names and offsets of a map's entries.
private struct MapEntries {
  var names: [String] = []
  var offsets: [Int] = []
  var indexes: [String: Int] = [:]
  var end = 0
}

extension ValueDecoder {
  private func enterFields() throws {
    guard shape == nil, entries == nil else { return }
    do throws(Fault) {
      switch place.kind {
      case .object: shape = try payload.enter(place, depth: depth)
      case .map: entries = try readEntries()
      default: throw .mismatch(found: place.kind)
      }
    } catch {
      throw self.error(error, [String: Any].self)
    }
    nextOffset = place.offset
  }

  private func readEntries() throws(Fault) -> MapEntries {
    try payload.checkDepth(depth)
    var entries = MapEntries()
    var offset = place.offset
    for index in 0..<(try payload.count(at: &offset, minimum: 2)) {
      let name = try payload.valueBytes.text(at: &offset)
      guard entries.indexes.updateValue(index, forKey: name) == nil else {
        throw .malformed("a duplicate entry name")
      }
      entries.names.append(name)
      entries.offsets.append(offset)
      offset = try payload.end(of: try payload.tagged(at: offset), depth: depth + 1)
    }
    entries.end = offset
    // An empty map has no last entry whose end would be recorded.
    if entries.names.isEmpty { payload.finish(place.offset, depth: depth, end: offset) }
    return entries
  }

  /// The names of all fields, including absent ones.
  var fieldNames: [String] { shape?.names ?? entries?.names ?? [] }

  /// The index of the field with that name.
  @inline(__always)
  func index(of name: String) -> Int? {
    if let shape {
      if nextField < shape.names.count, shape.names[nextField] == name { return nextField }
      return shape.index(of: name)
    }
    return entries?.indexes[name]
  }

  /// The place of a field's value; nil if it is absent.
  @inline(__always)
  func field(_ index: Int) throws(Fault) -> Place? {
    guard let shape else { return try entryPlace(index) }
    if index != nextField { try seek(index, in: shape) }
    return try payload.resolve(shape.types[index], at: nextOffset)
  }

  private func entryPlace(_ index: Int) throws(Fault) -> Place? {
    guard let entries else { return nil }
    nextField = index
    nextOffset = entries.offsets[index]
    return try payload.tagged(at: nextOffset)
  }

  /// Moves to a field other than the next one.
  private func seek(_ index: Int, in shape: Shape) throws(Fault) {
    if index < nextField {
      if offsets.isEmpty {
        var offset = place.offset
        for type in shape.types {
          offsets.append(offset)
          offset = try payload.end(of: type, at: offset, depth: depth + 1)
        }
      }
      nextOffset = offsets[index]
      nextField = index
      return
    }
    while nextField < index {
      nextOffset = try payload.end(of: shape.types[nextField], at: nextOffset, depth: depth + 1)
      nextField += 1
    }
  }

  /// Records that the field just read ends at `end`.
  @inline(__always)
  func finishField(_ index: Int, end: Int) {
    guard let shape else {
      if let entries, index == entries.names.count - 1 {
        payload.finish(place.offset, depth: depth, end: entries.end)
      }
      return
    }
    nextField = index + 1
    nextOffset = end
    if nextField == shape.names.count { payload.finish(place.offset, depth: depth, end: end) }
  }
}

// MARK: - Keyed

/// The fields of an object or the entries of a map.
struct KeyedFields<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let decoder: ValueDecoder

  var codingPath: [any CodingKey] { decoder.codingPath }

  var allKeys: [Key] {
    decoder.fieldNames.compactMap { Key(stringValue: $0) }.filter(contains)
  }

  func contains(_ key: Key) -> Bool {
    guard let index = decoder.index(of: key.stringValue) else { return false }
    do {
      return try decoder.field(index) != nil
    } catch {
      // An unreadable field is present; decoding it throws.
      return true
    }
  }

  /// Finds a field.
  @inline(__always)
  private func find(_ key: Key, _ type: Any.Type) throws -> (index: Int, place: Place)? {
    guard let index = decoder.index(of: key.stringValue) else { return nil }
    do throws(Fault) {
      return try decoder.field(index).map { (index, $0) }
    } catch {
      throw decoder.error(error, type, below: .key(key))
    }
  }

  private func missing(_ key: Key) -> DecodingError {
    .keyNotFound(
      key,
      DecodingError.Context(
        codingPath: codingPath, debugDescription: "No value for the key \(key.stringValue)"))
  }

  func decodeNil(forKey key: Key) throws -> Bool {
    guard let (index, place) = try find(key, Never.self) else { throw missing(key) }
    guard place.kind == .null else { return false }
    decoder.finishField(index, end: place.offset)
    return true
  }

  @inline(__always)
  func scalar<S: WireScalar>(_ key: Key) throws -> S {
    guard let (index, place) = try find(key, S.self) else { throw missing(key) }
    return try scalar(key, index, place)
  }

  @inline(__always)
  private func scalar<S: WireScalar>(_ key: Key, _ index: Int, _ place: Place) throws -> S {
    do throws(Fault) {
      var end = 0
      let value = try S.read(decoder.payload, place, end: &end)
      decoder.finishField(index, end: end)
      return value
    } catch {
      throw decoder.error(error, S.self, below: .key(key))
    }
  }

  @inline(__always)
  private func optionalScalar<S: WireScalar>(_ key: Key) throws -> S? {
    guard let (index, place) = try find(key, S.self) else { return nil }
    if place.kind == .null { return nil }
    return try scalar(key, index, place) as S
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

  func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
    guard let (index, place) = try find(key, T.self) else { throw missing(key) }
    return try value(key, index, place)
  }

  func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
    guard let (index, place) = try find(key, T.self), place.kind != .null else { return nil }
    return try value(key, index, place) as T
  }

  private func value<T: Decodable>(_ key: Key, _ index: Int, _ place: Place) throws -> T {
    if T.self == URL.self, place.kind != .object, place.kind != .map {
      return same(try scalar(key, index, place) as URL)
    }
    if T.self == UUID.self { return same(try scalar(key, index, place) as UUID) }
    if T.self == Date.self { return same(try scalar(key, index, place) as Date) }
    if T.self == Data.self { return same(try scalar(key, index, place) as Data) }
    var end: Int?
    let value: T = try decoder.decode(place, name: .key(key), end: &end)
    if let end { decoder.finishField(index, end: end) }
    return value
  }

  private func child(_ key: Key) throws -> ValueDecoder {
    guard let (_, place) = try find(key, Any.self) else { throw missing(key) }
    return decoder.child(place, .key(key))
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
      let place = try decoder.index(of: key.stringValue).flatMap { index throws(Fault) in
        try decoder.field(index)
      }
      return decoder.child(place ?? .null, .key(key))
    } catch {
      throw decoder.error(error, (any Decoder).self, below: .key(key))
    }
  }

  func superDecoder(forKey key: Key) throws -> any Decoder {
    decoder.child(try find(key, (any Decoder).self)?.place ?? .null, .key(key))
  }
}

extension Place {
  /// A null value without a position in the payload.
  static var null: Place { Place(kind: .null, argument: 0, offset: 0) }
}

// MARK: - Unkeyed

/// The elements of a list.
struct Elements: UnkeyedDecodingContainer {
  private let decoder: ValueDecoder
  private let type: WireType
  private let total: Int
  private var offset: Int
  private(set) var currentIndex = 0
  /// The decoder of the previous element, reused unless the element kept it.
  private var last: ValueDecoder?

  init(_ decoder: ValueDecoder) throws {
    self.decoder = decoder
    let place = decoder.place
    offset = place.offset
    do throws(Fault) {
      guard place.kind == .list else { throw .mismatch(found: place.kind) }
      try decoder.payload.checkDepth(decoder.depth)
      type = try decoder.payload.elementType(of: place)
      total = try decoder.payload.count(
        at: &offset, minimum: decoder.payload.minimumBytes(of: type))
    } catch {
      throw decoder.error(error, [Any].self)
    }
    if total == 0 { decoder.payload.finish(place.offset, depth: decoder.depth, end: offset) }
  }

  var codingPath: [any CodingKey] { decoder.codingPath }
  var count: Int? { total }
  var isAtEnd: Bool { currentIndex >= total }

  /// The place of the next element; an absent element is null.
  private func next(_ wanted: Any.Type) throws -> Place {
    guard currentIndex < total else {
      throw DecodingError.valueNotFound(
        wanted,
        DecodingError.Context(
          codingPath: codingPath + [PathKey(intValue: currentIndex)],
          debugDescription: "The list has no more elements"))
    }
    do throws(Fault) {
      return try decoder.payload.resolve(type, at: offset)
        ?? Place(kind: .null, argument: 0, offset: offset + 1)
    } catch {
      throw decoder.error(error, wanted, below: .index(currentIndex))
    }
  }

  private mutating func finish(end: Int) {
    offset = end
    currentIndex += 1
    if currentIndex == total {
      decoder.payload.finish(decoder.place.offset, depth: decoder.depth, end: end)
    }
  }

  mutating func decodeNil() throws -> Bool {
    let place = try next(Never.self)
    guard place.kind == .null else { return false }
    finish(end: place.offset)
    return true
  }

  mutating func scalar<S: WireScalar>() throws -> S {
    let place = try next(S.self)
    do throws(Fault) {
      var end = 0
      let value = try S.read(decoder.payload, place, end: &end)
      finish(end: end)
      return value
    } catch {
      throw decoder.error(error, S.self, below: .index(currentIndex))
    }
  }

  mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
    let place = try next(T.self)
    var end: Int?
    let value: T = try decoder.decode(
      place, name: .index(currentIndex), end: &end, again: &last)
    finish(end: try end ?? self.end(of: place))
    return value
  }

  /// Decodes an element by its type's `init(from:)`.
  mutating func decodeItself<T: Decodable>() throws -> T {
    let place = try next(T.self)
    let value = try T(from: decoder.child(place, .index(currentIndex), again: &last))
    let end = decoder.payload.knownEnd(of: place, depth: decoder.depth + 1)
    finish(end: try end ?? self.end(of: place))
    return value
  }

  /// Finds the end of an element that was not read to its end.
  private func end(of place: Place) throws -> Int {
    do throws(Fault) {
      return try decoder.payload.end(of: place, depth: decoder.depth + 1)
    } catch {
      throw decoder.error(error, Any.self, below: .index(currentIndex))
    }
  }

  private mutating func child() throws -> ValueDecoder {
    let place = try next(Any.self)
    let child = decoder.child(place, .index(currentIndex))
    finish(end: try end(of: place))
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

// MARK: - Single values

extension ValueDecoder: SingleValueDecodingContainer {
  func decodeNil() -> Bool { place.kind == .null }

  func scalar<S: WireScalar>() throws -> S {
    do throws(Fault) {
      var end = 0
      let value = try S.read(payload, place, end: &end)
      payload.finish(place.offset, depth: depth, end: end)
      return value
    } catch {
      throw self.error(error, S.self)
    }
  }

  func decode<T: Decodable>(_ type: T.Type) throws -> T {
    if let type = commonType(T.self, at: place) { return try read(type) }
    // A new decoder for the same place and depth: this one may have cached another container.
    let decoder = ValueDecoder(payload, place, depth: depth, parent: self, name: .root)
    return try composite(decoder)
  }
}
