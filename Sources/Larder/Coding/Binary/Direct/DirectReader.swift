/// The steps with which a type reads its fields from objects of one shape.
///
/// A plan is learned from the first object with the shape, and applies to payloads with the same
/// table of shapes. ``steps`` ends with a terminator, which has no name.
package struct ReadingPlan {
  // Unsafe: allocated in `init`, and freed by the plan's owner with `deallocate`.
  let steps: UnsafeMutablePointer<ReadingStep>
  let table: UnsafeMutableRawBufferPointer
  /// The number of the shape in the table.
  let shape: UInt8
  /// Whether every step reads the next field without conversion, up to the last field.
  let isPlain: Bool
  /// The plan learned before this one.
  package var older: UnsafePointer<ReadingPlan>?

  init(_ steps: [ReadingStep], end: ReadingStep, table: UnsafeRawBufferPointer, shape: UInt8) {
    self.steps = .allocate(capacity: steps.count + 1)
    self.steps.initialize(from: steps, count: steps.count)
    (self.steps + steps.count).initialize(to: end)
    self.table = .allocate(byteCount: table.count, alignment: 1)
    self.table.copyMemory(from: table)
    self.shape = shape
    isPlain = end.isAtEnd && steps.allSatisfy { $0.plainName != nil }
  }

  package func deallocate() {
    steps.deallocate()
    table.deallocate()
  }

  /// Whether the plan applies to objects of that shape in a payload with that table.
  @inline(__always)
  fileprivate func matches(_ table: UnsafeRawBufferPointer, _ shape: UInt8) -> Bool {
    self.shape == shape && areEqual(UnsafeRawBufferPointer(self.table), table)
  }
}

/// One step of a plan: how a type's request for a field is served.
package struct ReadingStep {
  /// The bit that marks the request for a list of numbers in a tagged field.
  static let listBit: UInt8 = 0x40

  // Unsafe: names are literals, which live as long as the program.
  /// The requested name, if the field is the next one and has the requested kind.
  var plainName: UnsafePointer<UInt8>?
  /// The requested kind, with the top bit for an optional, or ``listBit`` for a list of the kind.
  var kind: UInt8 = 0
  /// Whether the steps before this one have read all fields of the object.
  var isAtEnd = false
  /// The number of the object's fields before the position at which this step begins.
  var reached = 0
  /// The requested name.
  var name: UnsafePointer<UInt8>?
  /// The index of the requested field; nil if the object has no field of that name.
  var field: Int?
}

/// Reads values of types that request their fields directly, without `Codable`.
///
/// A payload that the reader does not support is an error; the caller then decodes it with the
/// type's `init(from:)`, which decides whether the payload is valid.
package struct DirectReader: ~Copyable {
  let bytes: PayloadBytes
  package var offset: Int
  // Unsafe: both point into a plan that its owner keeps for the reader's lifetime.
  var next: UnsafePointer<ReadingStep>
  var plan: UnsafePointer<ReadingPlan>?
  private let table: UnsafeRawBufferPointer
  var number: UInt8
  /// Whether each object of a list is preceded by its type.
  var isTagged: Bool
  /// The number of objects in a list; 0 for a single object.
  package let count: Int
  /// The nesting level of the fields: they are within their object, which may be within a list.
  var depth: Int

  // For objects that no plain plan covers.
  var payload: Payload?
  var objectStart = 0
  /// The number of the object's fields before `offset`; nil while the plan is followed.
  var reached: Int?
  /// The steps so far of the plan that is learned; nil while none is.
  package internal(set) var learned: [ReadingStep]?

  /// The step of a reader without a plan, which matches no name.
  // Unsafe: allocated once, and never changed or freed.
  nonisolated(unsafe) static let noStep: UnsafePointer<ReadingStep> = {
    let step = UnsafeMutablePointer<ReadingStep>.allocate(capacity: 1)
    step.initialize(to: ReadingStep())
    return UnsafePointer(step)
  }()
}

// MARK: - Beginning and ending

extension DirectReader {
  /// Begins to read a payload, by the newest plan that is for such payloads.
  ///
  /// `start` is the payload's. The memory must stay valid until ``close()``.
  package init(
    _ payload: UnsafeRawBufferPointer, _ start: Start, newest: UnsafePointer<ReadingPlan>?
  ) {
    bytes = PayloadBytes(payload, upTo: start.end)
    table = UnsafeRawBufferPointer(rebasing: payload[start.end...])
    (offset, number) = (start.offset, start.number)
    (isTagged, count) = (start.isTagged, start.count)
    depth = start.count == 0 ? 2 : 3
    plan = Self.plan(for: table, start.number, newest: newest)
    next = plan.map { UnsafePointer($0.pointee.steps) } ?? Self.noStep
  }

  /// What a payload says before the fields of its first object.
  // It is small enough to be returned in registers. Copies in memory take longer than the checks.
  package struct Start {
    /// The end of the value.
    fileprivate let end: Int
    fileprivate let offset: Int
    fileprivate let count: Int
    fileprivate let number: UInt8
    fileprivate let isTagged: Bool

    /// Reads the start of a payload that holds an object, or a list of objects.
    package init(of payload: UnsafeRawBufferPointer, isList: Bool) throws(Fault) {
      // The head, the first two bytes of the value, and a table of at least one byte.
      guard payload.count >= MemoryLayout<UInt64>.size else { throw .malformed("too few bytes") }
      let head = UInt64(littleEndian: payload.loadUnaligned(as: UInt64.self))
      guard UInt8(truncatingIfNeeded: head) == Binary.version else {
        throw .malformed("an unsupported format version")
      }
      let size = Int(UInt32(truncatingIfNeeded: head >> (8 * Binary.sizeOffset)))
      guard size >= 2, size < payload.count - Binary.headBytes else {
        throw .malformed("a missing table of shapes")
      }
      end = Binary.headBytes + size
      let kind = UInt8(truncatingIfNeeded: head >> (8 * Binary.headBytes))
      let second = UInt8(truncatingIfNeeded: head >> (8 * (Binary.headBytes + 1)))
      guard isList else {
        guard kind == WireKind.object.rawValue else { throw .unsuitable("not an object") }
        (offset, number) = (Binary.headBytes + 2, second)
        (isTagged, count) = (false, 0)
        return
      }
      isTagged = second == WireKind.tagged.rawValue
      guard kind == WireKind.list.rawValue, isTagged || second == WireKind.object.rawValue else {
        throw .unsuitable("not a list of objects")
      }
      let start = Binary.headBytes + (isTagged ? 2 : 3)
      let bytes = PayloadBytes(payload, upTo: end)
      count = Int(UInt32(littleEndian: try bytes.load(at: start)))
      // An empty list has no shape.
      guard count > 0, count <= size else { throw .unsuitable("an empty list") }
      number = try bytes.load(at: isTagged ? start + 5 : start - 1)
      offset = start + 4
    }
  }

  /// Begins to read a value within a payload, whose nesting level is `depth`.
  ///
  /// It needs no ``close()``.
  package init(within payload: Payload, depth: Int) {
    bytes = payload.valueBytes
    table = UnsafeRawBufferPointer(rebasing: payload.bytes[payload.end...])
    (offset, number) = (0, 0)
    (isTagged, count) = (false, 0)
    self.depth = depth
    plan = nil
    next = Self.noStep
    self.payload = payload
  }

  /// Reads the next objects by the newest plan that is for such payloads.
  ///
  /// Without such a plan, the reader records how the type reads the next object. ``learn()`` makes
  /// a plan of that.
  package mutating func follow(newest: UnsafePointer<ReadingPlan>?) throws(Fault) {
    plan = Self.plan(for: table, number, newest: newest)
    if plan == nil { try beginLearning() }
  }

  @inline(__always)
  private static func plan(
    for table: UnsafeRawBufferPointer, _ number: UInt8, newest: UnsafePointer<ReadingPlan>?
  ) -> UnsafePointer<ReadingPlan>? {
    var next = newest
    while let plan = next, !plan.pointee.matches(table, number) { next = plan.pointee.older }
    return next
  }

  private mutating func beginLearning() throws(Fault) {
    try open()
    learned = []
  }

  /// Follows the plan that was learned from the object just read.
  package mutating func follow(learned plan: UnsafePointer<ReadingPlan>) { self.plan = plan }

  @inline(__always)
  var isLearning: Bool { learned != nil }

  /// Reads the table of shapes, unless that was done.
  private mutating func open() throws(Fault) {
    guard payload == nil else { return }
    let payload = try Payload(
      UnsafeRawBufferPointer(start: bytes.start, count: bytes.end + table.count))
    guard Int(number) < payload.shapes.count else { throw .malformed("an unknown shape") }
    self.payload = payload
  }

  /// Returns the plan learned from the object just read.
  package mutating func learn() -> ReadingPlan {
    var end = ReadingStep()
    end.reached = reached ?? 0
    end.isAtEnd = end.reached == shape?.types.count
    return ReadingPlan(learned.take() ?? [], end: end, table: table, shape: number)
  }

  package mutating func beginObject() throws(Fault) {
    if isTagged {
      guard try bytes.load(UInt8.self, at: offset) == WireKind.object.rawValue,
        try bytes.load(UInt8.self, at: offset + 1) == number
      else { throw .unsuitable("objects of several shapes") }
      offset += 2
    }
    objectStart = offset
    guard let plan else {
      // The first object of a payload that no plan is for.
      if payload == nil { try beginLearning() }
      return reached = 0
    }
    if !plan.pointee.isPlain { try open() }
    next = UnsafePointer(plan.pointee.steps)
    reached = nil
  }

  package mutating func endObject() throws(Fault) {
    if reached != nil || !next.pointee.isAtEnd { try skipRest() }
  }

  private mutating func skipRest() throws(Fault) {
    guard let payload, let shape else { throw .unsuitable("fewer fields than before") }
    let from = leavePlan()
    try seek(to: shape.types.count, from: from, payload, shape)
  }

  /// Ends the reading, and copies the bytes for decoders that outlive it.
  package mutating func close() {
    guard var payload = payload.take() else { return }
    if !isKnownUniquelyReferenced(&payload) { payload.keepBytes() }
  }
}

// MARK: - Fields

extension DirectReader {
  @inline(__always)
  mutating func take<S: WireScalar>(_ name: StaticString) throws(Fault) -> S {
    if isNext(name, S.kind.rawValue) { return try S.body(in: bytes, at: &offset) }
    return try readOther(name)
  }

  @inline(__always)
  mutating func takeIfPresent<S: WireScalar>(_ name: StaticString) throws(Fault) -> S? {
    guard isNext(name, S.kind.rawValue | WireKind.optionalBit) else {
      return try readOtherIfPresent(name)
    }
    let presence: UInt8 = try bytes.load(at: offset)
    guard presence <= 1 else { throw .malformed("a presence byte other than 0 or 1") }
    offset += 1
    return presence == 0 ? nil : try S.body(in: bytes, at: &offset)
  }

  /// Decodes a field's value with its type's `init(from:)`, or as a list of numbers.
  ///
  /// Values within it are read by `parts`.
  package mutating func decode<T: Decodable>(
    _ name: StaticString, parts: any StreamParts.Type
  ) throws -> T {
    if T.self == [Int].self { return same(try numbers(name) as [Int]) }
    if T.self == [Double].self { return same(try numbers(name) as [Double]) }
    guard let place = try locate(name, WireKind.tagged.rawValue) else { throw Fault.missing }
    return try decode(place, parts)
  }

  package mutating func decodeIfPresent<T: Decodable>(
    _ name: StaticString, parts: any StreamParts.Type
  ) throws -> T? {
    let kind = WireKind.tagged.rawValue | WireKind.optionalBit
    guard let place = try locate(name, kind) else { return nil }
    if place.kind == .null {
      offset = place.offset
      return nil
    }
    return try decode(place, parts) as T
  }

  @inline(__always)
  private mutating func numbers<T: WireScalar & Decodable>(_ name: StaticString) throws -> [T] {
    let request = T.kind.rawValue | ReadingStep.listBit
    guard numberKind(of: T.self) != nil, isNext(name, request) else {
      guard let place = try locate(name, request) else { throw Fault.missing }
      // A list of other numbers is converted, also in later payloads.
      if let last = learned?.indices.last, try !isList(place, of: T.kind) {
        learned?[last].plainName = nil
      }
      return try decode(place, nil)
    }
    guard depth <= Binary.maximumDepth else { throw Fault.unsuitable("nested too deeply") }
    guard try bytes.load(UInt8.self, at: offset) == WireKind.list.rawValue,
      try bytes.load(UInt8.self, at: offset + 1) == T.kind.rawValue
    else { throw Fault.unsuitable("not a list of such numbers") }
    offset += 2
    return try bytes.numbers(at: &offset)
  }

  private func isList(_ place: WirePlace, of kind: WireKind) throws(Fault) -> Bool {
    guard place.kind == .list, place.argument >= 0 else { return false }
    return try bytes.load(UInt8.self, at: place.argument) == kind.rawValue
  }

  /// Decodes the part at `place` with its type's `init(from:)`.
  package mutating func decodePart<T: Decodable>(
    _ place: WirePlace, parts: any StreamParts.Type
  ) throws -> T {
    try decode(place, parts, isItself: true)
  }

  private mutating func decode<T: Decodable>(
    _ place: WirePlace, _ parts: (any StreamParts.Type)?, isItself: Bool = false
  ) throws -> T {
    guard let payload else { throw Fault.missing }
    if let parts { payload.state.pointee.forms.use(parts) }
    let value: T = try Binary.decode(payload, place, depth: depth, isItself: isItself)
    offset = try payload.end(of: place, depth: depth)
    return value
  }

  /// Advances to the next step if the plan's next field has that name and kind.
  @inline(__always)
  private mutating func isNext(_ name: StaticString, _ kind: UInt8) -> Bool {
    guard next.pointee.plainName == name.utf8Start, next.pointee.kind == kind else { return false }
    next += 1
    return true
  }

  @inline(never)
  private mutating func readOther<S: WireScalar>(_ name: StaticString) throws(Fault) -> S {
    guard let place = try locate(name, S.kind.rawValue) else { throw .missing }
    return try value(place)
  }

  @inline(never)
  private mutating func readOtherIfPresent<S: WireScalar>(
    _ name: StaticString
  ) throws(Fault) -> S? {
    guard let place = try locate(name, S.kind.rawValue | WireKind.optionalBit) else { return nil }
    if place.kind == .null {
      offset = place.offset
      return nil
    }
    return try value(place) as S
  }

  private mutating func value<S: WireScalar>(_ place: WirePlace) throws(Fault) -> S {
    guard let payload else { throw .missing }
    return try S.read(payload, place, end: &offset)
  }
}

// MARK: - Fields out of order

extension DirectReader {
  private var shape: Shape? { payload?.shapes[Int(number)] }

  /// Moves to a field; nil if the object has no field of that name, or its value is absent.
  mutating func locate(_ name: StaticString, _ kind: UInt8) throws(Fault) -> WirePlace? {
    if next == Self.noFields { return nil }
    guard let payload, let shape else { throw .unsuitable("fields in another order than before") }
    let field: Int?
    if reached == nil, next.pointee.name == name.utf8Start, next.pointee.kind == kind {
      field = next.pointee.field
      if let field { try seek(to: field, from: next.pointee.reached, payload, shape) }
      next += 1
    } else {
      let from = leavePlan()
      field = shape.index(of: name.description)
      if isLearning {
        let step = step(name, kind, field, from: from, shape)
        learned?.append(step)
      }
      if let field {
        try seek(to: field, from: from, payload, shape)
        reached = field + 1
      }
    }
    guard let field else { return nil }
    if let place = try payload.resolve(shape.types[field], at: offset) { return place }
    offset += 1
    return nil
  }

  private func step(
    _ name: StaticString, _ kind: UInt8, _ field: Int?, from reached: Int, _ shape: Shape
  ) -> ReadingStep {
    var step = ReadingStep(
      kind: kind, reached: reached, name: name.utf8Start, field: field)
    guard let field, field == reached else { return step }
    let type = shape.types[field]
    let found = type.kind.rawValue | (type.isOptional ? WireKind.optionalBit : 0)
    let isScalar = kind & ~WireKind.optionalBit < WireKind.list.rawValue && found == kind
    // The bytes of a tagged field say whether it has the numbers.
    let isList = kind & ReadingStep.listBit != 0 && found == WireKind.tagged.rawValue
    if isScalar || isList { step.plainName = step.name }
    return step
  }

  /// Stops following the plan, and returns the number of fields before `offset`.
  private mutating func leavePlan() -> Int {
    if let reached { return reached }
    let reached = next.pointee.reached
    self.reached = reached
    next = Self.noStep
    return reached
  }

  /// Moves from the start of one field to the start of another.
  private mutating func seek(
    to field: Int, from: Int, _ payload: Payload, _ shape: Shape
  ) throws(Fault) {
    var from = from
    if field < from {
      offset = objectStart
      from = 0
    }
    while from < field {
      offset = try payload.end(of: shape.types[from], at: offset, depth: depth)
      from += 1
    }
  }
}
