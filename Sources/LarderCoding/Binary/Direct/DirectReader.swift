import LarderBytes

/// How a type reads its fields from objects of one shape, as its first value has shown.
///
/// A plan is for one table of shapes, and the last of ``steps`` has no name: it is none.
package struct ReadingPlan {
  // Unsafe: made once, in `init`, and freed by whoever owns the plan.
  let steps: UnsafeMutablePointer<ReadingStep>
  let table: UnsafeMutableRawBufferPointer
  /// The number of the shape in the table.
  let shape: UInt8
  /// Whether each step reads the next field as it stands.
  let isPlain: Bool
  /// The plan that was made before this one.
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

  /// Whether the plan is for payloads with that table, whose objects have that shape.
  package func fits(_ table: UnsafeRawBufferPointer, _ shape: UInt8) -> Bool {
    self.shape == shape && areEqual(UnsafeRawBufferPointer(self.table), table)
  }
}

/// What is done when a type asks for a field.
package struct ReadingStep {
  // Unsafe: names are literals, which stay as long as the program.
  /// The name that is asked for, if the field is the next one, and of the very kind.
  var plainName: UnsafePointer<UInt8>?
  /// The kind that is asked for, with the top bit for an optional.
  var kind: UInt8 = 0
  /// Whether there are no fields behind those that were read before.
  var isAtEnd = false
  /// How many fields of the object there are before the place that was reached before this step.
  var reached = 0
  var name: UnsafePointer<UInt8>?
  /// The field that is asked for; -1 if the object has none of the name.
  var field = -1
}

/// Reads values whose type takes its fields by itself.
///
/// Whatever is unusual in a payload is an error, and then the type's `init(from:)` has to say what
/// it makes of it.
package struct DirectReader: ~Copyable {
  private let bytes: PayloadBytes
  private var offset: Int
  // Unsafe: in the plan, whose owner lends it for as long as the reader is there.
  private var next: UnsafePointer<ReadingStep>
  private var plan: UnsafePointer<ReadingPlan>?
  private let table: UnsafeRawBufferPointer
  private let number: UInt8
  /// Whether there is a shape's number before each object.
  private let isTagged: Bool
  /// How many objects there are; nil for a single one.
  package let count: Int?

  // For what is not plain.
  private var payload: Payload?
  private var objectStart = 0
  /// How many fields are before `offset`, once the plan was left.
  private var reached = -1
  package private(set) var isLearning = false
  private var learned: [ReadingStep] = []

  /// Where there is no plan to follow.
  // Unsafe: made once, and never changed or freed.
  nonisolated(unsafe) private static let nothing: UnsafePointer<ReadingStep> = {
    let step = UnsafeMutablePointer<ReadingStep>.allocate(capacity: 1)
    step.initialize(to: ReadingStep())
    return UnsafePointer(step)
  }()
}

// MARK: - Beginning

extension DirectReader {
  /// Begins to read a payload of an object, or of a list of some.
  ///
  /// The memory has to stay until the reader is closed.
  package static func begin(
    _ payload: UnsafeRawBufferPointer, isList: Bool
  ) throws(Fault) -> DirectReader {
    guard payload.count > Binary.headBytes, payload[0] == Binary.version else {
      throw .malformed("no payload of this version")
    }
    let whole = PayloadBytes(payload, upTo: payload.count)
    let size = Int(UInt32(littleEndian: try whole.load(at: Binary.sizeOffset)))
    guard size < payload.count - Binary.headBytes else { throw .malformed("no table of shapes") }
    let bytes = PayloadBytes(payload, upTo: Binary.headBytes + size)
    let table = UnsafeRawBufferPointer(rebasing: payload[bytes.end...])
    let start = Binary.headBytes
    let kind: UInt8 = try bytes.load(at: start)
    guard isList else {
      guard kind == Kind.object.rawValue else { throw .unfit("no object") }
      return DirectReader(
        bytes: bytes, table: table, offset: start, number: try bytes.load(at: start + 1),
        isTagged: true, count: nil)
    }
    let element: UInt8 = try bytes.load(at: start + 1)
    let isTagged = element == Kind.tagged.rawValue
    guard kind == Kind.list.rawValue, isTagged || element == Kind.object.rawValue else {
      throw .unfit("no list of objects")
    }
    let head = isTagged ? 2 : 3
    let count = Int(UInt32(littleEndian: try bytes.load(at: start + head)))
    // One without elements does not tell a shape.
    guard count > 0, count <= size else { throw .unfit("a list without elements") }
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
    next = Self.nothing
  }

  /// Whether a plan is for this payload; then it is followed.
  package mutating func follow(_ plan: UnsafePointer<ReadingPlan>) throws(Fault) -> Bool {
    guard plan.pointee.fits(table, number) else { return false }
    self.plan = plan
    if !plan.pointee.isPlain, payload == nil { try open() }
    return true
  }

  /// Takes the first object to learn a plan from.
  package mutating func beginLearning() throws(Fault) {
    try open()
    isLearning = true
  }

  /// Reads the shapes.
  private mutating func open() throws(Fault) {
    let payload = try Payload(
      UnsafeRawBufferPointer(start: bytes.start, count: bytes.end + table.count))
    guard Int(number) < payload.shapes.count else { throw .malformed("a shape that is not there") }
    self.payload = payload
  }

  /// The plan that the object just read has shown, which was the first with its shape.
  package mutating func learn() -> ReadingPlan {
    isLearning = false
    var end = ReadingStep()
    end.reached = reached
    end.isAtEnd = reached == shape?.types.count
    return ReadingPlan(learned, end: end, table: table, shape: number)
  }

  package mutating func beginObject() throws(Fault) {
    if isTagged {
      guard try bytes.load(UInt8.self, at: offset) == Kind.object.rawValue,
        try bytes.load(UInt8.self, at: offset + 1) == number
      else { throw .unfit("objects of several shapes") }
      offset += 2
    }
    objectStart = offset
    if let plan {
      next = UnsafePointer(plan.pointee.steps)
      reached = -1
    } else {
      reached = 0
    }
  }

  package mutating func endObject() throws(Fault) {
    if reached >= 0 || !next.pointee.isAtEnd { try skipRest() }
  }

  private mutating func skipRest() throws(Fault) {
    guard let payload, let shape else { throw .unfit("fewer fields than before") }
    leavePlan()
    try seek(to: shape.types.count, from: reached, payload, shape)
  }

  /// Gives what has outlived the reading bytes that do so too.
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
    guard presence <= 1 else { throw .malformed("a presence that is neither 0 nor 1") }
    offset += 1
    return presence == 0 ? nil : try S.body(in: bytes, at: &offset)
  }

  /// Reads a value by its `init(from:)`.
  package mutating func decode<T: Decodable>(_ name: StaticString) throws -> T {
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

  private mutating func decode<T: Decodable>(_ place: Place) throws -> T {
    guard let payload else { throw Fault.missing }
    // Around the field is its object, and around that the list.
    let depth = count == nil ? 2 : 3
    let value: T = try Binary.decode(payload, place, depth: depth)
    offset = try payload.end(of: place, depth: depth)
    return value
  }

  /// Whether the field that is asked for comes next, as it is asked for.
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

// MARK: - What is not plain

extension DirectReader {
  private var shape: Shape? { payload?.shapes[Int(number)] }

  /// Moves to a field; nil if the object has none of that name, or its value is absent.
  private mutating func locate(_ name: StaticString, _ kind: UInt8) throws(Fault) -> Place? {
    guard let payload, let shape else { throw .unfit("fields in another order than before") }
    let field: Int
    if reached < 0, next.pointee.name == name.utf8Start, next.pointee.kind == kind {
      field = next.pointee.field
      if field >= 0 { try seek(to: field, from: next.pointee.reached, payload, shape) }
      next += 1
    } else {
      leavePlan()
      field = shape.index(of: name.description) ?? -1
      if isLearning { learned.append(step(name, kind, field, shape)) }
      if field >= 0 {
        try seek(to: field, from: reached, payload, shape)
        reached = field + 1
      }
    }
    guard field >= 0 else { return nil }
    if let place = try payload.resolve(shape.types[field], at: offset) { return place }
    offset += 1
    return nil
  }

  private func step(
    _ name: StaticString, _ kind: UInt8, _ field: Int, _ shape: Shape
  ) -> ReadingStep {
    var step = ReadingStep(
      kind: kind, reached: reached, name: name.utf8Start, field: field)
    if field == reached, kind & ~Kind.optionalBit < Kind.list.rawValue {
      let type = shape.types[field]
      let found = type.kind.rawValue | (type.isOptional ? Kind.optionalBit : 0)
      if found == kind { step.plainName = step.name }
    }
    return step
  }

  private mutating func leavePlan() {
    guard reached < 0 else { return }
    reached = next.pointee.reached
    next = Self.nothing
  }

  /// Moves from one field of the object to another.
  private mutating func seek(
    to field: Int, from: Int, _ payload: Payload, _ shape: Shape
  ) throws(Fault) {
    var from = from
    if field < from {
      offset = objectStart
      from = 0
    }
    let depth = count == nil ? 2 : 3
    while from < field {
      offset = try payload.end(of: shape.types[from], at: offset, depth: depth)
      from += 1
    }
  }
}
