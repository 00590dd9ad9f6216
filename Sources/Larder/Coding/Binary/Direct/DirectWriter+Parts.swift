// Values that are written directly within others.

extension DirectWriter {
  /// The object around a value, to return to.
  package struct Outer {
    fileprivate var shape: UnsafePointer<WrittenShape>?
    fileprivate var next: UnsafePointer<WrittenField>
    fileprivate var depth: Int
    fileprivate var cases: UnsafePointer<WrittenCase>?
    fileprivate var caseState: CaseState
    /// The offset at which the value begins.
    fileprivate(set) var start: Int
  }

  /// Begins a field that holds a tagged value; false if its value must not be written.
  package mutating func beginPart(_ name: StaticString) -> Bool {
    begin(name, WireKind.tagged.rawValue)
  }

  /// Begins an optional field that holds a tagged value; false if its value must not be written.
  package mutating func beginPart(_ name: StaticString, isPresent: Bool) -> Bool {
    guard begin(name, WireKind.tagged.rawValue | WireKind.optionalBit) else { return false }
    bytes.append(isPresent ? 1 : 0)
    return isPresent
  }

  /// Writes a part, tagged, with its type's `encode(to:)`.
  package mutating func encodePart(_ value: some Encodable, parts: any StreamParts.Type) {
    encode(value, parts, isItself: true)
  }

  /// Writes a tagged null.
  package mutating func writeNull() { bytes.append(WireKind.null.rawValue) }

  /// Begins a tagged object; nil if it cannot be written.
  ///
  /// The shape must live as long as the program.
  package mutating func beginObject(_ shape: UnsafePointer<WrittenShape>) -> Outer? {
    guard let number = number(of: shape, levels: 1) else { return nil }
    bytes.append(WireKind.object.rawValue)
    bytes.append(number)
    return enter(shape, levels: 1)
  }

  /// Begins a tagged list of `count` objects; nil if it cannot be written.
  ///
  /// ``endObject()`` ends each object.
  package mutating func beginList(
    _ shape: UnsafePointer<WrittenShape>, count: Int
  ) -> Outer? {
    guard let number = number(of: shape, levels: 2) else { return nil }
    bytes.append(WireKind.list.rawValue)
    bytes.append(WireKind.object.rawValue)
    bytes.append(number)
    bytes.append(littleEndian: UInt32(clamping: count))
    return enter(shape, levels: 2)
  }

  /// Begins a tagged map of `count` entries; nil if it cannot be written.
  ///
  /// ``beginEntry(_:)`` begins each entry.
  package mutating func beginMap(count: Int) -> Outer? {
    guard let outer = enterContainers(1) else { return nil }
    bytes.append(WireKind.map.rawValue)
    bytes.append(littleEndian: UInt32(clamping: count))
    return outer
  }

  /// Begins a tagged list of `count` tagged elements; nil if it cannot be written.
  package mutating func beginList(count: Int) -> Outer? {
    guard let outer = enterContainers(1) else { return nil }
    bytes.append(WireKind.list.rawValue)
    bytes.append(WireKind.tagged.rawValue)
    bytes.append(littleEndian: UInt32(clamping: count))
    return outer
  }

  /// Begins containers within each other; nil if they would be nested too deeply.
  mutating func enterContainers(_ levels: Int) -> Outer? {
    guard !needsFallback, depth + levels <= Binary.maximumDepth else { return fail() }
    defer { depth += levels }
    return outer
  }

  /// The object around a value that begins here.
  private var outer: Outer {
    Outer(
      shape: shape, next: next, depth: depth, cases: cases, caseState: caseState,
      start: bytes.count)
  }

  package mutating func beginEntry(_ name: String) { bytes.append(text: name) }

  /// Writes an empty tagged list.
  package mutating func writeEmptyList() {
    guard depth < Binary.maximumDepth else { return needsFallback = true }
    bytes.append(WireKind.list.rawValue)
    bytes.append(WireKind.tagged.rawValue)
    bytes.append(littleEndian: UInt32(0))
  }

  /// Returns to the object around a value.
  package mutating func leave(_ outer: Outer) {
    (shape, next, depth) = (outer.shape, outer.next, outer.depth)
    (cases, caseState) = (outer.cases, outer.caseState)
  }

  private mutating func enter(_ new: UnsafePointer<WrittenShape>, levels: Int) -> Outer {
    let outer = outer
    shape = new
    next = UnsafePointer(new.pointee.fields)
    depth += levels
    return outer
  }

  /// The number of a shape, for objects within `levels` more containers; nil if that is too deep,
  /// or there are too many shapes.
  private mutating func number(
    of shape: UnsafePointer<WrittenShape>, levels: Int
  ) -> UInt8? {
    guard !needsFallback, depth + levels <= Binary.maximumDepth,
      let number = number(of: shape)
    else { return fail() }
    return number
  }

  private mutating func fail<T>() -> T? {
    needsFallback = true
    return nil
  }
}
