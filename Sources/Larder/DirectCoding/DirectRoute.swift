import Foundation
import LarderBytes
import LarderCoding
import Synchronization

/// How the binary coder writes and reads values of a ``DirectCoding`` type, and arrays of them.
///
/// It remembers the shape that the type writes, and how it reads the tables of shapes that it has
/// met. What cannot go this way goes by `Codable`.
final class DirectRoute<Element: DirectCoding> {
  /// How many ways of reading are remembered: one for each version of the type, and for each of the
  /// two coders that wrote it.
  private static var maximumPlans: Int { 16 }

  // Unsafe: memory that this route has made, that is not changed, and that its `deinit` frees. A
  // lock, or a count of references, would cost as much as a small value.
  private let shape = Atomic<UnsafePointer<WrittenShape>?>(nil)
  /// The plan that was made last; each leads to the one before.
  private let plans = Atomic<UnsafePointer<ReadingPlan>?>(nil)
  private let planCount = Atomic<Int>(0)

  deinit {
    if let shape = shape.load(ordering: .acquiring) {
      shape.pointee.deallocate()
      shape.deallocate()
    }
    var next = plans.load(ordering: .acquiring)
    while let plan = next {
      next = plan.pointee.older
      plan.pointee.deallocate()
      plan.deallocate()
    }
  }
}

// @unchecked: all it has is atomic, and what that points to does not change.
extension DirectRoute: @unchecked Sendable {}

// MARK: - Writing

extension DirectRoute {
  func encode(_ value: Element, into buffer: inout ByteBuffer) throws {
    guard let shape = shape(shownBy: value, &buffer) else {
      return try Binary.encode(value, into: &buffer)
    }
    var fields = FieldWriter(DirectWriter(&buffer, shape: shape, listOf: nil))
    value.write(to: &fields)
    fields.base.endObject()
    if !fields.finish(into: &buffer) { try Binary.encode(value, into: &buffer) }
  }

  func encode(_ values: [Element], into buffer: inout ByteBuffer) throws {
    guard let first = values.first, let shape = shape(shownBy: first, &buffer) else {
      return try Binary.encode(values, into: &buffer)
    }
    var fields = FieldWriter(DirectWriter(&buffer, shape: shape, listOf: values.count))
    Self.write(values, to: &fields)
    if !fields.finish(into: &buffer) { try Binary.encode(values, into: &buffer) }
  }

  private static func write(_ values: [Element], to fields: inout FieldWriter) {
    values.withUnsafeBufferPointer { values in
      guard let places = values.inPlace else { return }
      for index in values.indices {
        write(places[index], to: &fields)
        fields.base.endObject()
      }
    }
  }

  private static func write(_ place: borrowing InPlace<Element>, to fields: inout FieldWriter) {
    place.value.write(to: &fields)
  }

  private func shape(
    shownBy value: Element, _ buffer: inout ByteBuffer
  ) -> UnsafePointer<WrittenShape>? {
    if let known = shape.load(ordering: .acquiring) { return known }
    var fields = FieldWriter(DirectWriter(&buffer, shape: nil, listOf: nil))
    value.write(to: &fields)
    guard let learned = fields.learn(into: &buffer) else { return nil }
    let new = UnsafeMutablePointer<WrittenShape>.allocate(capacity: 1)
    new.initialize(to: learned)
    let (isFirst, known) = shape.compareExchange(
      expected: nil, desired: UnsafePointer(new), ordering: .acquiringAndReleasing)
    if isFirst { return UnsafePointer(new) }
    learned.deallocate()
    new.deallocate()
    return known
  }
}

// MARK: - Reading

extension DirectRoute {
  func decode(_ bytes: RawSpan) throws -> Element {
    do {
      return try bytes.withUnsafeBytes { try read($0) }
    } catch {
      // The bytes are asked once more, by `Codable`, which says what is wrong with them if it is.
      return try Binary.decode(Element.self, from: bytes)
    }
  }

  func decodeList(_ bytes: RawSpan) throws -> [Element] {
    do {
      return try bytes.withUnsafeBytes { try readList($0) }
    } catch {
      return try Binary.decode([Element].self, from: bytes)
    }
  }

  /// Reads a value; an error if it is not for this route to say what it is.
  func read(_ payload: UnsafeRawBufferPointer) throws -> Element {
    var fields = FieldReader(try .begin(payload, isList: false))
    defer { fields.base.close() }
    try followPlan(&fields)
    return try element(&fields)
  }

  func readList(_ payload: UnsafeRawBufferPointer) throws -> [Element] {
    var fields = FieldReader(try .begin(payload, isList: true))
    defer { fields.base.close() }
    try followPlan(&fields)
    var values: [Element] = []
    let count = fields.base.count ?? 0
    // Elements may be larger than their bytes: no more room than could be needed is taken.
    values.reserveCapacity(min(count, 1024))
    for _ in 0..<count { values.append(try element(&fields)) }
    return values
  }

  private func followPlan(_ fields: inout FieldReader) throws {
    var next = plans.load(ordering: .acquiring)
    while let plan = next {
      if try fields.base.follow(plan) { return }
      next = plan.pointee.older
    }
    try fields.base.beginLearning()
  }

  private func element(_ fields: inout FieldReader) throws -> Element {
    try fields.base.beginObject()
    let value = try Element(from: &fields)
    if fields.base.isLearning, let plan = keep(fields.base.learn()) {
      _ = try fields.base.follow(plan)
    }
    try fields.base.endObject()
    return value
  }

  /// Remembers a plan, unless there are many.
  private func keep(_ plan: ReadingPlan) -> UnsafePointer<ReadingPlan>? {
    guard planCount.add(1, ordering: .relaxed).newValue <= Self.maximumPlans else {
      plan.deallocate()
      return nil
    }
    let new = UnsafeMutablePointer<ReadingPlan>.allocate(capacity: 1)
    new.initialize(to: plan)
    var expected = plans.load(ordering: .acquiring)
    while true {
      new.pointee.older = expected
      let (isDone, found) = plans.compareExchange(
        expected: expected, desired: UnsafePointer(new), ordering: .acquiringAndReleasing)
      if isDone { return UnsafePointer(new) }
      expected = found
    }
  }
}

// MARK: - Coders

extension Coder {
  /// The coder of values that go directly; nil for those that do not.
  static func direct() -> Coder? where Value: Codable {
    if let type = Value.self as? any DirectCoding.Type {
      return coder(of: type) as? Coder
    }
    return (Value.self as? any DirectList.Type)?.coder() as? Coder
  }

  private static func coder<T: DirectCoding>(of type: T.Type) -> any Sendable {
    let route = DirectRoute<T>()
    return Coder<T>(
      format: .binary, encode: { try route.encode($0, into: &$1) },
      decode: { try route.decode($0) })
  }
}

/// An array of values that go directly.
private protocol DirectList {
  static func coder() -> any Sendable
}

extension Array: DirectList where Element: DirectCoding {
  fileprivate static func coder() -> any Sendable {
    let route = DirectRoute<Element>()
    return Coder<Self>(
      format: .binary, encode: { try route.encode($0, into: &$1) },
      decode: { try route.decodeList($0) })
  }
}
