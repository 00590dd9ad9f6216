import Synchronization

/// Writes and reads values of one type, without `Codable`.
///
/// There are parts for ``DirectCoding`` and ``DirectEnum`` types, and for optionals, arrays, sets
/// and dictionaries with string keys that hold such values. The value at an address, and the
/// generic parameter, are always of the part's own type.
protocol DirectPart: StreamPart {
  /// Writes the value at `place`, tagged.
  func write(at place: UnsafeRawPointer, to fields: inout FieldWriter)

  /// Reads the value at `place`.
  func read<T: Decodable>(_ place: WirePlace, from fields: inout FieldReader) throws -> T
}

extension DirectPart {
  func write(at place: UnsafeRawPointer, within stream: StreamWriter) -> Bool {
    var fields = FieldWriter(DirectWriter(within: stream))
    write(at: place, to: &fields)
    return fields.finish(within: stream)
  }

  func read<T: Decodable>(
    _ place: WirePlace, within payload: Payload, depth: Int, end: inout Int
  ) throws -> T {
    var fields = FieldReader(within: payload, depth: depth)
    let value: T = try read(place, from: &fields)
    end = fields.base.offset
    return value
  }
}

/// The parts that the program has used, by type.
enum DirectParts {
  /// The part for a type, or the absence of one.
  // @unchecked: the memory behind `streamPart` never changes.
  private struct Known: @unchecked Sendable {
    let type: ObjectIdentifier
    let part: (any DirectPart)?
    /// The part for streams, in memory that is never freed.
    let streamPart: UnsafePointer<any StreamPart>?

    init(_ type: ObjectIdentifier, _ part: (any DirectPart)?) {
      (self.type, self.part) = (type, part)
      streamPart = part.map { part in
        let place = UnsafeMutablePointer<any StreamPart>.allocate(capacity: 1)
        place.initialize(to: part)
        return UnsafePointer(place)
      }
    }
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
  private static let all = Lock<[ObjectIdentifier: UnsafePointer<Known>]>([:])

  /// The part for a type; nil if its values are coded through `Codable`.
  static func part(for type: Any.Type) -> (any DirectPart)? { known(type).pointee.part }

  @inline(__always)
  private static func known(_ type: Any.Type) -> UnsafePointer<Known> {
    let id = ObjectIdentifier(type)
    let slot = slots + (Int(bitPattern: UInt(bitPattern: id)) >> 4) & (slotCount - 1)
    if let known = slot.pointee.load(ordering: .acquiring), known.pointee.type == id {
      return known
    }
    return find(type, id, slot)
  }

  private static func find(
    _ type: Any.Type, _ id: ObjectIdentifier, _ slot: UnsafeMutablePointer<Slot>
  ) -> UnsafePointer<Known> {
    let known = all.withLock { $0[id] } ?? add(make(type), for: id)
    // The slot belongs to the first type that takes it.
    _ = slot.pointee.compareExchange(
      expected: nil, desired: known, ordering: .acquiringAndReleasing)
    return known
  }

  /// Adds a part, unless another thread has done so.
  private static func add(
    _ part: (any DirectPart)?, for type: ObjectIdentifier
  ) -> UnsafePointer<Known> {
    all.withLock { all in
      if let known = all[type] { return known }
      let memory = UnsafeMutablePointer<Known>.allocate(capacity: 1)
      memory.initialize(to: Known(type, part))
      all[type] = UnsafePointer(memory)
      return UnsafePointer(memory)
    }
  }

  private static func make(_ type: Any.Type) -> (any DirectPart)? {
    if let type = type as? any DirectCoding.Type { return object(type) }
    if let type = type as? any DirectEnum.Type { return cases(of: type) }
    return (type as? any DirectComposition.Type)?.part()
  }

  private static func object<T: DirectCoding>(_ type: T.Type) -> any DirectPart { ObjectPart<T>() }

  private static func cases<T: DirectEnum>(of type: T.Type) -> any DirectPart { EnumPart<T>() }

  /// The part for a type, which lists of its values share.
  fileprivate static func shared<T: DirectCoding>(_ type: T.Type) -> ObjectPart<T> {
    (part(for: type) as? ObjectPart<T>) ?? ObjectPart()
  }

  /// The part for lists of objects.
  static func list<T: DirectCoding>(of type: T.Type) -> any DirectPart { ListPart<T>() }
}

extension DirectParts: StreamParts {
  static func part(of type: Any.Type) -> UnsafePointer<any StreamPart>? {
    known(type).pointee.streamPart
  }
}

// MARK: - Objects

private final class ObjectPart<Value: DirectCoding>: DirectPart {
  let route = DirectRoute<Value>()

  func write(at place: UnsafeRawPointer, to fields: inout FieldWriter) {
    write(inPlace(place).pointee, to: &fields)
  }

  private func write(_ place: borrowing InPlace<Value>, to fields: inout FieldWriter) {
    guard let shape = route.shape(shownBy: place.value) else {
      return fields.base.encodePart(place.value, parts: DirectParts.self)
    }
    guard let outer = fields.base.beginObject(shape) else { return }
    place.value.write(to: &fields)
    fields.base.endObject()
    fields.base.leave(outer)
  }

  func read<T: Decodable>(_ place: WirePlace, from fields: inout FieldReader) throws -> T {
    guard let outer = try fields.base.enterObject(place) else {
      return try fields.base.decodePart(place, parts: DirectParts.self)
    }
    let value = try route.next(&fields)
    fields.base.leave(outer)
    return same(value)
  }
}

private final class ListPart<Element: DirectCoding>: DirectPart {
  private let route = DirectParts.shared(Element.self).route

  func write(at place: UnsafeRawPointer, to fields: inout FieldWriter) {
    let elements = inPlace(place, [Element].self).pointee.value
    guard let first = elements.first else { return fields.base.writeEmptyList() }
    guard let shape = route.shape(shownBy: first) else {
      return fields.base.encodePart(elements, parts: DirectParts.self)
    }
    guard let outer = fields.base.beginList(shape, count: elements.count) else { return }
    DirectRoute.write(elements, to: &fields)
    fields.base.leave(outer)
  }

  func read<T: Decodable>(_ place: WirePlace, from fields: inout FieldReader) throws -> T {
    guard let (count, outer) = try fields.base.enterList(place) else {
      return try fields.base.decodePart(place, parts: DirectParts.self)
    }
    let elements = count == 0 ? [] : try route.next(count, &fields)
    fields.base.leave(outer)
    return same(elements)
  }
}

/// The value at an address, without a copy of it.
func inPlace<Value>(
  _ place: UnsafeRawPointer, _ type: Value.Type = Value.self
) -> UnsafePointer<InPlace<Value>> {
  // Unsafe: a part is found by its type, and so it is given values of that type only.
  unsafe place.assumingMemoryBound(to: Value.self).inPlace
}

/// Returns `value` as an `S`, which is the same type as `T`.
func same<T, S>(_ value: T) -> S {
  // Unsafe: a part is found by its type, and so it is given values of that type only.
  unsafe unsafeBitCast(value, to: S.self)
}
