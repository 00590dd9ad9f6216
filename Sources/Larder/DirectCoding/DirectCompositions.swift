/// A type that holds values of another type, and is coded directly if that type is.
protocol DirectComposition {
  /// Makes the part for the type; nil if its values are coded through `Codable`.
  static func part() -> (any DirectPart)?
}

extension Optional: DirectComposition where Wrapped: Codable {
  static func part() -> (any DirectPart)? {
    DirectParts.part(for: Wrapped.self).map { OptionalPart<Self>($0) }
  }
}

/// An optional, whose absence is found without a copy of its value.
private protocol OptionalValue {
  static var absent: Self { get }
  static func isAbsent(_ place: borrowing InPlace<Self>) -> Bool
  static func read(
    _ place: WirePlace, from fields: inout FieldReader, by part: any DirectPart
  ) throws -> Self
}

extension Optional: OptionalValue where Wrapped: Codable {
  fileprivate static var absent: Self { nil }

  fileprivate static func isAbsent(_ place: borrowing InPlace<Self>) -> Bool {
    if case .none = place.value { true } else { false }
  }

  fileprivate static func read(
    _ place: WirePlace, from fields: inout FieldReader, by part: any DirectPart
  ) throws -> Self { try part.read(place, from: &fields) as Wrapped }
}

extension Array: DirectComposition where Element: Codable {
  static func part() -> (any DirectPart)? {
    if let type = Element.self as? any DirectCoding.Type { return DirectParts.list(of: type) }
    return DirectParts.part(for: Element.self).map { TaggedPart<Element>($0) }
  }
}

extension Set: DirectComposition where Element: Codable {
  static func part() -> (any DirectPart)? {
    DirectParts.part(for: [Element].self).map { SetPart<Element>($0) }
  }
}

extension Dictionary: DirectComposition where Key == String, Value: Codable {
  static func part() -> (any DirectPart)? {
    DirectParts.part(for: Value.self).map { MapPart<Value>($0) }
  }
}

// Generic in the optional: generic code that names the optional of a type looks it up each time.
private final class OptionalPart<Value: OptionalValue>: DirectPart {
  private let wrapped: any DirectPart

  init(_ wrapped: any DirectPart) { self.wrapped = wrapped }

  func write(at place: UnsafeRawPointer, to fields: inout FieldWriter) {
    if Value.isAbsent(inPlace(place).pointee) { return fields.base.writeNull() }
    // A value that is present is at the start of its optional.
    wrapped.write(at: place, to: &fields)
  }

  func read<T: Decodable>(_ place: WirePlace, from fields: inout FieldReader) throws -> T {
    if fields.base.isNull(place) { return same(Value.absent) }
    return same(try Value.read(place, from: &fields, by: wrapped))
  }
}

/// Lists of anything but objects, such as lists of lists.
private final class TaggedPart<Element: Codable>: DirectPart {
  private let element: any DirectPart

  init(_ element: any DirectPart) { self.element = element }

  func write(at place: UnsafeRawPointer, to fields: inout FieldWriter) {
    let elements = inPlace(place, [Element].self).pointee.value
    guard let outer = fields.base.beginList(count: elements.count) else { return }
    elements.withUnsafeBufferPointer { elements in
      guard let start = elements.baseAddress else { return }
      for index in elements.indices { element.write(at: start + index, to: &fields) }
    }
    fields.base.leave(outer)
  }

  func read<T: Decodable>(_ place: WirePlace, from fields: inout FieldReader) throws -> T {
    guard let (count, outer) = try fields.base.enterTagged(place) else {
      return try fields.base.decodePart(place, parts: DirectParts.self)
    }
    var elements: [Element] = []
    // The count is not trusted: an element may be much larger than its bytes in the payload.
    elements.reserveCapacity(min(count, 1024))
    for _ in 0..<count {
      elements.append(try element.read(try fields.base.nextElement(), from: &fields))
    }
    fields.base.leave(outer)
    return same(elements)
  }
}

private final class SetPart<Element: Codable & Hashable>: DirectPart {
  private let list: any DirectPart

  init(_ list: any DirectPart) { self.list = list }

  func write(at place: UnsafeRawPointer, to fields: inout FieldWriter) {
    withUnsafePointer(to: Array(inPlace(place, Set<Element>.self).pointee.value)) {
      list.write(at: $0, to: &fields)
    }
  }

  func read<T: Decodable>(_ place: WirePlace, from fields: inout FieldReader) throws -> T {
    same(Set(try list.read(place, from: &fields) as [Element]))
  }
}

private final class MapPart<Value: Codable>: DirectPart {
  private let entry: any DirectPart

  init(_ entry: any DirectPart) { self.entry = entry }

  func write(at place: UnsafeRawPointer, to fields: inout FieldWriter) {
    let entries = inPlace(place, [String: Value].self).pointee.value
    guard let outer = fields.base.beginMap(count: entries.count) else { return }
    for (name, value) in entries {
      fields.base.beginEntry(name)
      withUnsafePointer(to: value) { entry.write(at: $0, to: &fields) }
    }
    fields.base.leave(outer)
  }

  func read<T: Decodable>(_ place: WirePlace, from fields: inout FieldReader) throws -> T {
    guard let (count, outer) = try fields.base.enterMap(place) else {
      return try fields.base.decodePart(place, parts: DirectParts.self)
    }
    var entries: [String: Value] = [:]
    entries.reserveCapacity(min(count, 1024))
    for _ in 0..<count {
      let (name, place) = try fields.base.nextEntry()
      let value: Value = try entry.read(place, from: &fields)
      guard entries.updateValue(value, forKey: name) == nil else { throw DuplicateName() }
    }
    fields.base.leave(outer)
    return same(entries)
  }
}

/// An internal error: the value is decoded again through `Codable`, which reports the duplicate.
private struct DuplicateName: Error {}
