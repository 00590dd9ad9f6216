import LarderBytes

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
  package func matches(_ table: UnsafeRawBufferPointer, _ shape: UInt8) -> Bool {
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
  var offset: Int
  // Unsafe: both point into a plan that its owner keeps for the reader's lifetime.
  var next: UnsafePointer<ReadingStep>
  var plan: UnsafePointer<ReadingPlan>?
  private let table: UnsafeRawBufferPointer
  var number: UInt8
  /// Whether each object is preceded by its type.
  var isTagged: Bool
  /// The number of objects in a list; nil for a single object.
  package let count: Int?
  /// The nesting level of the fields: they are within their object, which may be within a list.
  var depth: Int

  // For objects that no plain plan covers.
  var payload: Payload?
  var objectStart = 0
  /// The number of the object's fields before `offset`; nil while the plan is followed.
  var reached: Int?
  package internal(set) var isLearning = false
  var learned: [ReadingStep] = []

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
  /// Begins to read a payload that holds an object, or a list of objects.
  ///
  /// The memory must stay valid until ``close()``.
  package static func begin(
    _ payload: UnsafeRawBufferPointer, isList: Bool
  ) throws(Fault) -> DirectReader {
    guard payload.count > Binary.headBytes, payload[0] == Binary.version else {
      throw .malformed("an unsupported format version")
    }
    let whole = PayloadBytes(payload, upTo: payload.count)
    let size = Int(UInt32(littleEndian: try whole.load(at: Binary.sizeOffset)))
    guard size < payload.count - Binary.headBytes else {
      throw .malformed("a missing table of shapes")
    }
    let bytes = PayloadBytes(payload, upTo: Binary.headBytes + size)
    let table = UnsafeRawBufferPointer(rebasing: payload[bytes.end...])
    let start = Binary.headBytes
    let kind: UInt8 = try bytes.load(at: start)
    guard isList else {
      guard kind == Kind.object.rawValue else { throw .unsuitable("not an object") }
      return DirectReader(
        bytes: bytes, table: table, offset: start, number: try bytes.load(at: start + 1),
        isTagged: true, count: nil)
    }
    let element: UInt8 = try bytes.load(at: start + 1)
    let isTagged = element == Kind.tagged.rawValue
    guard kind == Kind.list.rawValue, isTagged || element == Kind.object.rawValue else {
      throw .unsuitable("not a list of objects")
    }
    let head = isTagged ? 2 : 3
    let count = Int(UInt32(littleEndian: try bytes.load(at: start + head)))
    // An empty list has no shape.
    guard count > 0, count <= size else { throw .unsuitable("an empty list") }
    return DirectReader(
      bytes: bytes, table: table, offset: start + head + 4,
      number: try bytes.load(at: start + (isTagged ? head + 5 : 2)), isTagged: isTagged,
      count: count)
  }

  private init(
    bytes: PayloadBytes, table: UnsafeRawBufferPointer, offset: Int, number: UInt8,
    isTagged: Bool, count: Int?
  ) {
    self.bytes = bytes
    self.table = table
    self.offset = offset
    self.number = number
    self.isTagged = isTagged
    self.count = count
    depth = count == nil ? 2 : 3
    next = Self.noStep
  }

  /// Follows `plan` from the next object on; false if the plan is for other payloads.
  package mutating func follow(_ plan: UnsafePointer<ReadingPlan>) throws(Fault) -> Bool {
    guard plan.pointee.matches(table, number) else { return false }
    self.plan = plan
    if !plan.pointee.isPlain { try open() }
    return true
  }

  /// Records how the type reads the next object, for ``learn()``.
  package mutating func beginLearning() throws(Fault) {
    try open()
    isLearning = true
  }

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
    isLearning = false
    var end = ReadingStep()
    end.reached = reached ?? 0
    end.isAtEnd = end.reached == shape?.types.count
    return ReadingPlan(learned, end: end, table: table, shape: number)
  }

  package mutating func beginObject() throws(Fault) {
    if isTagged {
      guard try bytes.load(UInt8.self, at: offset) == Kind.object.rawValue,
        try bytes.load(UInt8.self, at: offset + 1) == number
      else { throw .unsuitable("objects of several shapes") }
      offset += 2
    }
    objectStart = offset
    if let plan {
      next = UnsafePointer(plan.pointee.steps)
      reached = nil
    } else {
      reached = 0
    }
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
    guard isNext(name, S.kind.rawValue | Kind.optionalBit) else {
      return try readOtherIfPresent(name)
    }
    let presence: UInt8 = try bytes.load(at: offset)
    guard presence <= 1 else { throw .malformed("a presence byte other than 0 or 1") }
    offset += 1
    return presence == 0 ? nil : try S.body(in: bytes, at: &offset)
  }

  /// Decodes a field's value with its type's `init(from:)`, or as a list of numbers.
  package mutating func decode<T: Decodable>(_ name: StaticString) throws -> T {
    if T.self == [Int].self { return same(try numbers(name) as [Int]) }
    if T.self == [Double].self { return same(try numbers(name) as [Double]) }
    guard let place = try locate(name, Kind.tagged.rawValue) else { throw Fault.missing }
    return try decode(place)
  }

  package mutating func decodeIfPresent<T: Decodable>(_ name: StaticString) throws -> T? {
    let kind = Kind.tagged.rawValue | Kind.optionalBit
    guard let place = try locate(name, kind) else { return nil }
    if place.kind == .null {
      offset = place.offset
      return nil
    }
    return try decode(place) as T
  }

  @inline(__always)
  private mutating func numbers<T: WireScalar & Decodable>(_ name: StaticString) throws -> [T] {
    let request = T.kind.rawValue | ReadingStep.listBit
    guard numberKind(of: T.self) != nil, isNext(name, request) else {
      guard let place = try locate(name, request) else { throw Fault.missing }
      // A list of other numbers is converted, also in later payloads.
      if isLearning, try !isList(place, of: T.kind) {
        learned[learned.count - 1].plainName = nil
      }
      return try decode(place)
    }
    guard depth <= Binary.maximumDepth else { throw Fault.unsuitable("nested too deeply") }
    guard try bytes.load(UInt8.self, at: offset) == Kind.list.rawValue,
      try bytes.load(UInt8.self, at: offset + 1) == T.kind.rawValue
    else { throw Fault.unsuitable("not a list of such numbers") }
    offset += 2
    return try bytes.numbers(at: &offset)
  }

  private func isList(_ place: Place, of kind: Kind) throws(Fault) -> Bool {
    guard place.kind == .list, place.argument >= 0 else { return false }
    return try bytes.load(UInt8.self, at: place.argument) == kind.rawValue
  }

  package mutating func decode<T: Decodable>(_ place: Place) throws -> T {
    guard let payload else { throw Fault.missing }
    let value: T = try Binary.decode(payload, place, depth: depth)
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
    guard let place = try locate(name, S.kind.rawValue | Kind.optionalBit) else { return nil }
    if place.kind == .null {
      offset = place.offset
      return nil
    }
    return try value(place) as S
  }

  private mutating func value<S: WireScalar>(_ place: Place) throws(Fault) -> S {
    guard let payload else { throw .missing }
    return try S.read(payload, place, end: &offset)
  }
}

// MARK: - Fields out of order

extension DirectReader {
  private var shape: Shape? { payload?.shapes[Int(number)] }

  /// Moves to a field; nil if the object has no field of that name, or its value is absent.
  mutating func locate(_ name: StaticString, _ kind: UInt8) throws(Fault) -> Place? {
    guard let payload, let shape else { throw .unsuitable("fields in another order than before") }
    let field: Int?
    if reached == nil, next.pointee.name == name.utf8Start, next.pointee.kind == kind {
      field = next.pointee.field
      if let field { try seek(to: field, from: next.pointee.reached, payload, shape) }
      next += 1
    } else {
      let from = leavePlan()
      field = shape.index(of: name.description)
      if isLearning { learned.append(step(name, kind, field, from: from, shape)) }
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
    let found = type.kind.rawValue | (type.isOptional ? Kind.optionalBit : 0)
    let isScalar = kind & ~Kind.optionalBit < Kind.list.rawValue && found == kind
    // The bytes of a tagged field say whether it has the numbers.
    let isList = kind & ReadingStep.listBit != 0 && found == Kind.tagged.rawValue
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
