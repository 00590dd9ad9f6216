import Foundation
import Synchronization

/// Encodes and decodes values of a ``DirectCoding`` type, and arrays of them, in the binary format.
///
/// It caches the shape that the type writes, and one reading plan for each table of shapes that it
/// has read. Values that it cannot handle are encoded and decoded through `Codable`.
final class DirectRoute<Element: DirectCoding> {
  /// The number of cached reading plans.
  ///
  /// Each version of the type takes two: one for payloads written directly, one for payloads
  /// written through `Codable`.
  private static var maximumPlans: Int { 16 }
  /// The number of values without a shape after which no more shape is looked for.
  private static var maximumMisfits: Int { 16 }

  // Unsafe: shapes live as long as the program. A lock or a reference count would cost as much as
  // coding a small value.
  private let shape = Atomic<UnsafePointer<WrittenShape>?>(nil)
  /// The number of values that have shown no shape.
  private let misfits = Atomic<Int>(0)
  // Unsafe: this route allocates the plans, never changes one once published, and frees them in
  // `deinit`.
  /// The newest plan; each plan links to the one made before it.
  private let plans = Atomic<UnsafePointer<ReadingPlan>?>(nil)
  private let planCount = Atomic<Int>(0)

  deinit {
    var next = plans.load(ordering: .acquiring)
    while let plan = next {
      next = plan.pointee.older
      plan.pointee.deallocate()
      plan.deallocate()
    }
  }
}

// @unchecked: all state is atomic, and the memory it points to is immutable.
extension DirectRoute: @unchecked Sendable {}

// MARK: - Writing

extension DirectRoute {
  func encode(_ value: Element, into buffer: inout ByteBuffer) throws {
    guard let shape = shape(shownBy: value) else {
      return try Binary.encode(value, into: &buffer)
    }
    var fields = FieldWriter(DirectWriter(&buffer, shape: shape, listOf: nil))
    value.write(to: &fields)
    fields.base.endObject()
    if !fields.finish(into: &buffer) { try Binary.encode(value, into: &buffer) }
  }

  func encode(_ values: [Element], into buffer: inout ByteBuffer) throws {
    guard let first = values.first, let shape = shape(shownBy: first) else {
      return try Binary.encode(values, into: &buffer)
    }
    var fields = FieldWriter(DirectWriter(&buffer, shape: shape, listOf: values.count))
    Self.write(values, to: &fields)
    if !fields.finish(into: &buffer) { try Binary.encode(values, into: &buffer) }
  }

  static func write(_ values: [Element], to fields: inout FieldWriter) {
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

  /// The shape that the type writes; nil if it cannot be written directly.
  @inline(__always)
  func shape(shownBy value: Element) -> UnsafePointer<WrittenShape>? {
    shape.load(ordering: .acquiring) ?? learnShape(from: value)
  }

  @inline(never)
  private func learnShape(from value: Element) -> UnsafePointer<WrittenShape>? {
    guard misfits.load(ordering: .relaxed) < Self.maximumMisfits else { return nil }
    guard let learned = learn(from: value) else {
      misfits.add(1, ordering: .relaxed)
      return nil
    }
    // Another thread may have learned another one from a value with other fields.
    let (isFirst, known) = shape.compareExchange(
      expected: nil, desired: learned, ordering: .acquiringAndReleasing)
    return isFirst ? learned : known
  }

  /// The shape that a value shows.
  ///
  /// Returns nil if the value has no fields, or if the shape lacks one that `Codable` writes.
  private func learn(from value: Element) -> UnsafePointer<WrittenShape>? {
    let fields = FieldWriter.fields(writtenBy: value.write)
    guard let learned = WrittenShape.shape(of: fields) else { return nil }
    do {
      if try learned.pointee.hasAllFields(of: value) { return learned }
    } catch {
      // The value is then encoded through `Codable`, which throws the error.
    }
    return nil
  }
}

// MARK: - Reading

extension DirectRoute {
  func decode(_ bytes: RawSpan) throws -> Element {
    do {
      return try bytes.withUnsafeBytes { try read($0) }
    } catch {
      // Decodes again through `Codable`, which reports what is wrong with the bytes, if anything.
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

  /// Reads a value; throws if `Codable` must decode the payload instead.
  @inline(__always)
  func read(_ payload: UnsafeRawBufferPointer) throws -> Element {
    let start = try DirectReader.Start(of: payload, isList: false)
    var fields = FieldReader(payload, start, newest: plans.load(ordering: .acquiring))
    defer { fields.base.close() }
    return try element(&fields)
  }

  func readList(_ payload: UnsafeRawBufferPointer) throws -> [Element] {
    let start = try DirectReader.Start(of: payload, isList: true)
    var fields = FieldReader(payload, start, newest: plans.load(ordering: .acquiring))
    defer { fields.base.close() }
    return try elements(fields.base.count, &fields)
  }

  /// Reads the next object.
  func next(_ fields: inout FieldReader) throws -> Element {
    try fields.base.follow(newest: plans.load(ordering: .acquiring))
    return try element(&fields)
  }

  /// Reads the next objects, which have one shape.
  func next(_ count: Int, _ fields: inout FieldReader) throws -> [Element] {
    try fields.base.follow(newest: plans.load(ordering: .acquiring))
    return try elements(count, &fields)
  }

  private func elements(_ count: Int, _ fields: inout FieldReader) throws -> [Element] {
    var values: [Element] = []
    // The count is not trusted: an element may be much larger than its bytes in the payload.
    values.reserveCapacity(min(count, 1024))
    for _ in 0..<count { values.append(try element(&fields)) }
    return values
  }

  @inline(__always)
  private func element(_ fields: inout FieldReader) throws -> Element {
    try fields.base.beginObject()
    let value = try Element(from: &fields)
    if fields.base.learned != nil, let plan = keep(fields.base.learn()) {
      fields.base.follow(learned: plan)
    }
    try fields.base.endObject()
    return value
  }

  /// Caches a plan; returns nil if ``maximumPlans`` are cached already.
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
  /// The direct coder for `Value`; nil if neither it nor its elements are ``DirectCoding``.
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

/// An array of ``DirectCoding`` values.
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
