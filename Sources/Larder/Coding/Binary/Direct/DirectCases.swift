// A value of an enum is an object with one field, which has the name of the case. The field holds
// an object with the fields of the case, or an empty map if the case has none.

/// A case of an enum and the fields that it writes, as learned from its first value.
package struct WrittenCase {
  // Unsafe: shapes live as long as the program.
  /// The shape of the object with the case's name.
  let outer: UnsafePointer<WrittenShape>
  /// The shape of the object with the case's fields; nil if it has none.
  let inner: UnsafePointer<WrittenShape>?
  /// The case learned before this one.
  package var older: UnsafePointer<WrittenCase>?

  /// Makes a case of what one of its values writes; nil if that has no shape.
  package init?(_ fields: [WrittenField]) {
    let inner = fields.count > 1 ? WrittenShape.shape(of: Array(fields.dropFirst())) : nil
    guard let outer = WrittenShape.shape(of: Array(fields.prefix(1))),
      fields.count == 1 || inner != nil
    else { return nil }
    (self.outer, self.inner) = (outer, inner)
  }

  private var name: WrittenField { outer.pointee.fields.pointee }

  /// Returns the known case with this case's name; nil if there is none.
  ///
  /// `cases` is the newest known case, which links to the older ones.
  package func known(
    among cases: UnsafePointer<WrittenCase>?
  ) -> UnsafePointer<WrittenCase>? { Self.find(name, among: cases) }

  fileprivate static func find(
    _ name: WrittenField, among cases: UnsafePointer<WrittenCase>?
  ) -> UnsafePointer<WrittenCase>? {
    var next = cases
    while let known = next, known.pointee.name.name != name.name { next = known.pointee.older }
    if next != nil { return next }
    // The same name from another literal in the program.
    next = cases
    while let known = next, known.pointee.name.text != name.text { next = known.pointee.older }
    return next
  }

  /// Whether the case has all fields that `value` encodes through `Codable`.
  ///
  /// - Throws: An error of the type's own `encode(to:)`.
  package func hasAllFields(of value: some Encodable) throws -> Bool {
    try WrittenShape.withPayload(of: value) { payload, place in
      guard outer.pointee.hasAllFields(of: place, payload),
        let inside = try payload.resolve(payload.shapes[place.argument].types[0], at: place.offset)
      else { return false }
      if let inner { return inner.pointee.hasAllFields(of: inside, payload) }
      var offset = inside.offset
      return try inside.kind == .map && payload.count(at: &offset, minimum: 2) == 0
    }
  }
}

// MARK: - Writing

extension DirectWriter {
  /// What a writer knows of the case of the value that it writes.
  enum CaseState { case none, expected, unknown, written }

  /// Begins a value of an enum; nil if it cannot be written.
  ///
  /// `cases` is the newest of the enum's known cases, which links to the older ones.
  package mutating func beginEnum(_ cases: UnsafePointer<WrittenCase>?) -> Outer? {
    guard let outer = enterContainers(2) else { return nil }
    (self.cases, caseState) = (cases, .expected)
    (shape, next) = (nil, Self.noField)
    return outer
  }

  /// Begins the fields of a case.
  package mutating func beginCase(_ name: StaticString) {
    let field = WrittenField(name, WireKind.tagged.rawValue)
    if learn(field) { return }
    guard caseState == .expected, !needsFallback else { return needsFallback = true }
    cases = WrittenCase.find(field, among: cases)
    guard let known = cases else {
      caseState = .unknown
      return needsFallback = true
    }
    caseState = .written
    bytes.append(WireKind.object.rawValue)
    // The shapes' numbers are set when the value ends.
    bytes.append(0)
    if let inner = known.pointee.inner {
      bytes.append(WireKind.object.rawValue)
      bytes.append(0)
      (shape, next) = (inner, UnsafePointer(inner.pointee.fields))
    } else {
      bytes.append(WireKind.map.rawValue)
      bytes.append(littleEndian: UInt32(0))
    }
  }

  /// Ends a value of an enum; false, with nothing written, if its case is unknown.
  package mutating func endEnum(_ outer: Outer) -> Bool {
    defer { leave(outer) }
    if caseState == .unknown {
      needsFallback = false
      return false
    }
    guard caseState == .written, !needsFallback, let written = cases else {
      needsFallback = true
      return true
    }
    if let inner = written.pointee.inner {
      endObject()
      setNumber(of: inner, at: outer.start + 3)
    }
    setNumber(of: written.pointee.outer, at: outer.start + 1)
    return true
  }

  private mutating func setNumber(of shape: UnsafePointer<WrittenShape>, at offset: Int) {
    guard let number = number(of: shape) else { return needsFallback = true }
    bytes.set(number, at: offset)
  }
}

// MARK: - Reading

extension DirectReader {
  /// The step of an object without fields, which matches no name.
  // Unsafe: allocated once, and never changed or freed.
  nonisolated(unsafe) static let noFields: UnsafePointer<ReadingStep> = {
    let step = UnsafeMutablePointer<ReadingStep>.allocate(capacity: 1)
    step.initialize(to: ReadingStep())
    return UnsafePointer(step)
  }()

  /// Moves into the fields of an enum's case; nil if the place holds another value.
  package mutating func enterCase(
    _ place: WirePlace
  ) throws(Fault) -> (name: String, outer: Outer)? {
    guard let payload, place.kind == .object else { return nil }
    let state = payload.state
    let fields = try state.pointee.enter(place, depth: depth)
    guard fields.count == 1,
      let inside = try payload.resolve(fields.start.pointee.type, at: place.offset)
    else { return nil }
    switch inside.kind {
    case .object: _ = try state.pointee.enter(inside, depth: depth + 1)
    case .map:
      try payload.checkDepth(depth + 1)
      var offset = inside.offset
      guard try payload.count(at: &offset, minimum: 2) == 0 else { return nil }
    default: return nil
    }
    let outer = enter(levels: 2)
    reached = 0
    number = UInt8(truncatingIfNeeded: inside.argument)
    isTagged = false
    (objectStart, offset) = (inside.offset, inside.offset)
    if inside.kind == .map {
      next = Self.noFields
      offset += 4
    }
    return (fields.start.pointee.name, outer)
  }

  /// Moves behind the fields of a case, and returns to the object around the value.
  package mutating func leaveCase(_ outer: consuming Outer) throws(Fault) {
    if next != Self.noFields { try endObject() }
    leave(outer)
  }
}
