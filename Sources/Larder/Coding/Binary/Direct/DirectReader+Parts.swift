// Values that are read directly within others.

extension DirectReader {
  /// The object around a value, to return to.
  package struct Outer {
    fileprivate var next: UnsafePointer<ReadingStep>
    fileprivate var plan: UnsafePointer<ReadingPlan>?
    fileprivate var number: UInt8
    fileprivate var isTagged: Bool
    fileprivate var depth: Int
    fileprivate var objectStart: Int
    fileprivate var reached: Int?
    fileprivate var learned: [ReadingStep]?
  }

  /// Moves to a field that holds a tagged value.
  package mutating func locatePart(_ name: StaticString) throws(Fault) -> WirePlace {
    guard let place = try locate(name, WireKind.tagged.rawValue) else { throw .missing }
    return place
  }

  /// Moves to an optional field that holds a tagged value; nil if that is missing or nil.
  package mutating func locatePartIfPresent(_ name: StaticString) throws(Fault) -> WirePlace? {
    let kind = WireKind.tagged.rawValue | WireKind.optionalBit
    guard let place = try locate(name, kind) else { return nil }
    guard place.kind != .null else {
      offset = place.offset
      return nil
    }
    return place
  }

  /// Moves into an object; nil if the place holds another value.
  package mutating func enterObject(_ place: WirePlace) throws(Fault) -> Outer? {
    guard let payload, place.kind == .object else { return nil }
    _ = try payload.enter(place, depth: depth)
    let outer = enter(levels: 1)
    number = UInt8(truncatingIfNeeded: place.argument)
    isTagged = false
    offset = place.offset
    return outer
  }

  /// Moves into a list of objects of one shape; nil if the place holds another value.
  ///
  /// An empty list may have elements of any type.
  package mutating func enterList(
    _ place: WirePlace
  ) throws(Fault) -> (count: Int, outer: Outer)? {
    guard let payload, place.kind == .list else { return nil }
    try payload.checkDepth(depth)
    let type = try payload.elementType(of: place)
    guard !type.isOptional, type.kind == .object || type.kind == .tagged else { return nil }
    var start = place.offset
    let count = try payload.count(at: &start, minimum: payload.minimumBytes(of: type))
    var number = UInt8(truncatingIfNeeded: type.argument)
    if count > 0 {
      try payload.checkDepth(depth + 1)
      if type.kind == .tagged {
        let first = try payload.tagged(at: start)
        guard first.kind == .object else { return nil }
        number = UInt8(truncatingIfNeeded: first.argument)
      }
    }
    let outer = enter(levels: 2)
    self.number = number
    isTagged = type.kind == .tagged
    offset = start
    return (count, outer)
  }

  /// Moves into a list of tagged elements; nil if the place holds another value.
  package mutating func enterTagged(
    _ place: WirePlace
  ) throws(Fault) -> (count: Int, outer: Outer)? {
    guard let payload, place.kind == .list else { return nil }
    try payload.checkDepth(depth)
    let type = try payload.elementType(of: place)
    guard !type.isOptional, type.kind == .tagged else { return nil }
    var start = place.offset
    let count = try payload.count(at: &start, minimum: payload.minimumBytes(of: type))
    let outer = enter(levels: 1)
    offset = start
    return (count, outer)
  }

  /// Finds the next of the elements that are tagged.
  package mutating func nextElement() throws(Fault) -> WirePlace {
    guard let payload else { throw .missing }
    return try payload.tagged(at: offset)
  }

  /// Moves behind a null; false if the place holds another value.
  package mutating func isNull(_ place: WirePlace) -> Bool {
    guard place.kind == .null else { return false }
    offset = place.offset
    return true
  }

  /// Moves into a map; nil if the place holds another value.
  package mutating func enterMap(
    _ place: WirePlace
  ) throws(Fault) -> (count: Int, outer: Outer)? {
    guard let payload, place.kind == .map else { return nil }
    try payload.checkDepth(depth)
    var start = place.offset
    let count = try payload.count(at: &start, minimum: 2)
    let outer = enter(levels: 1)
    offset = start
    return (count, outer)
  }

  /// Reads the name of a map's next entry, and finds its value.
  package mutating func nextEntry() throws(Fault) -> (name: String, value: WirePlace) {
    guard let payload else { throw .missing }
    let name = try payload.valueBytes.text(at: &offset)
    return (name, try payload.tagged(at: offset))
  }

  /// Returns to the object around a value that has been read to its end.
  package mutating func leave(_ outer: consuming Outer) {
    (next, plan, number, isTagged) = (outer.next, outer.plan, outer.number, outer.isTagged)
    (depth, objectStart, reached) = (outer.depth, outer.objectStart, outer.reached)
    learned = outer.learned
  }

  mutating func enter(levels: Int) -> Outer {
    let outer = Outer(
      next: next, plan: plan, number: number, isTagged: isTagged, depth: depth,
      objectStart: objectStart, reached: reached, learned: learned)
    next = Self.noStep
    plan = nil
    depth += levels
    reached = nil
    learned = nil
    return outer
  }
}
