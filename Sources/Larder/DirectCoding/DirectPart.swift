import LarderCoding
import Synchronization

/// Writes and reads values of one type within ``DirectCoding`` values, without `Codable`.
///
/// There are parts for ``DirectCoding`` types, arrays of them, and dictionaries of them with string
/// keys. The generic parameter of the functions is always the part's own type.
protocol DirectPart: AnyObject, Sendable {
  /// Writes a value, tagged.
  func write<T: Encodable>(_ value: T, to fields: inout FieldWriter)

  /// Reads the value at `place`.
  func read<T: Decodable>(_ place: Place, from fields: inout FieldReader) throws -> T
}

/// The parts that the program has used, by type.
enum DirectParts {
  /// The part for a type, or the absence of one.
  private struct Known {
    let type: ObjectIdentifier
    let part: (any DirectPart)?
  }

  private typealias Slot = Atomic<UnsafePointer<Known>?>

  // Unsafe: allocated once and never freed; each slot is set once, to memory that is never freed.
  nonisolated(unsafe) private static let slots: UnsafeMutablePointer<Slot> = {
    let slots = UnsafeMutablePointer<Slot>.allocate(capacity: slotCount)
    for index in 0..<slotCount { (slots + index).initialize(to: Slot(nil)) }
    return slots
  }()
  private static let slotCount = 256

  /// The parts of all types; a lock takes longer than a slot.
  private static let all = Mutex<[ObjectIdentifier: UnsafePointer<Known>]>([:])

  /// The part for a type; nil if its values are coded through `Codable`.
  static func part<T>(for type: T.Type) -> (any DirectPart)? {
    let id = ObjectIdentifier(type)
    let slot = slots + (Int(bitPattern: UInt(bitPattern: id)) >> 4) & (slotCount - 1)
    if let known = slot.pointee.load(ordering: .acquiring), known.pointee.type == id {
      return known.pointee.part
    }
    return find(type, id, slot)
  }

  private static func find<T>(
    _ type: T.Type, _ id: ObjectIdentifier, _ slot: UnsafeMutablePointer<Slot>
  ) -> (any DirectPart)? {
    let known = all.withLock { $0[id] } ?? add(Known(type: id, part: make(type)))
    // The slot belongs to the first type that takes it.
    _ = slot.pointee.compareExchange(
      expected: nil, desired: known, ordering: .acquiringAndReleasing)
    return known.pointee.part
  }

  /// Adds a part, unless another thread has done so.
  private static func add(_ new: Known) -> UnsafePointer<Known> {
    all.withLock { all in
      if let known = all[new.type] { return known }
      let memory = UnsafeMutablePointer<Known>.allocate(capacity: 1)
      memory.initialize(to: new)
      all[new.type] = UnsafePointer(memory)
      return UnsafePointer(memory)
    }
  }

  private static func make<T>(_ type: T.Type) -> (any DirectPart)? {
    if let type = type as? any DirectCoding.Type { return object(type) }
    return (type as? any DirectCollection.Type)?.part()
  }

  private static func object<T: DirectCoding>(_ type: T.Type) -> any DirectPart { ObjectPart<T>() }

  /// The part for a type, which lists and maps of its values share.
  fileprivate static func shared<T: DirectCoding>(_ type: T.Type) -> ObjectPart<T> {
    (part(for: type) as? ObjectPart<T>) ?? ObjectPart()
  }
}

/// A collection of ``DirectCoding`` values.
private protocol DirectCollection {
  static func part() -> any DirectPart
}

extension Array: DirectCollection where Element: DirectCoding {
  fileprivate static func part() -> any DirectPart { ListPart<Element>() }
}

extension Dictionary: DirectCollection where Key == String, Value: DirectCoding {
  fileprivate static func part() -> any DirectPart { MapPart<Value>() }
}

// MARK: - Objects

private final class ObjectPart<Value: DirectCoding>: DirectPart {
  let route = DirectRoute<Value>()

  func write<T: Encodable>(_ value: T, to fields: inout FieldWriter) {
    put(same(value), to: &fields)
  }

  func put(_ value: Value, to fields: inout FieldWriter) {
    guard let shape = route.shape(shownBy: value) else { return fields.base.encodePart(value) }
    guard let outer = fields.base.beginObject(shape) else { return }
    value.write(to: &fields)
    fields.base.endObject()
    fields.base.leave(outer)
  }

  func read<T: Decodable>(_ place: Place, from fields: inout FieldReader) throws -> T {
    same(try take(place, from: &fields) as Value)
  }

  func take(_ place: Place, from fields: inout FieldReader) throws -> Value {
    guard let outer = try fields.base.enterObject(place) else {
      return try fields.base.decode(place)
    }
    let value = try route.next(&fields)
    fields.base.leave(outer)
    return value
  }
}

// MARK: - Collections

private final class ListPart<Element: DirectCoding>: DirectPart {
  private let route = DirectParts.shared(Element.self).route

  func write<T: Encodable>(_ value: T, to fields: inout FieldWriter) {
    let elements: [Element] = same(value)
    guard let first = elements.first else { return fields.base.writeEmptyList() }
    guard let shape = route.shape(shownBy: first) else { return fields.base.encodePart(value) }
    guard let outer = fields.base.beginList(shape, count: elements.count) else { return }
    DirectRoute.write(elements, to: &fields)
    fields.base.leave(outer)
  }

  func read<T: Decodable>(_ place: Place, from fields: inout FieldReader) throws -> T {
    guard let (count, outer) = try fields.base.enterList(place) else {
      return try fields.base.decode(place)
    }
    let elements = count == 0 ? [] : try route.next(count, &fields)
    fields.base.leave(outer)
    return same(elements)
  }
}

private final class MapPart<Value: DirectCoding>: DirectPart {
  private let object = DirectParts.shared(Value.self)

  func write<T: Encodable>(_ value: T, to fields: inout FieldWriter) {
    let entries: [String: Value] = same(value)
    guard let outer = fields.base.beginMap(count: entries.count) else { return }
    for (name, value) in entries {
      fields.base.beginEntry(name)
      object.put(value, to: &fields)
    }
    fields.base.leave(outer)
  }

  func read<T: Decodable>(_ place: Place, from fields: inout FieldReader) throws -> T {
    guard let (count, outer) = try fields.base.enterMap(place) else {
      return try fields.base.decode(place)
    }
    var entries: [String: Value] = [:]
    entries.reserveCapacity(min(count, 1024))
    for _ in 0..<count {
      let (name, place) = try fields.base.nextEntry()
      let value = try object.take(place, from: &fields)
      guard entries.updateValue(value, forKey: name) == nil else { throw DuplicateName() }
    }
    fields.base.leave(outer)
    return same(entries)
  }
}

/// An internal error: the value is decoded again through `Codable`, which reports the duplicate.
private struct DuplicateName: Error {}

/// Returns `value` as an `S`, which is the same type as `T`.
private func same<T, S>(_ value: T) -> S {
  // Unsafe: a part is found by its type, and so it is given values of that type only.
  unsafe unsafeBitCast(value, to: S.self)
}
