import Foundation

/// Reads a value, and finds the fields of an object or a map.
///
/// It remembers the position in an object's fields, so that fields requested in their stored order
/// are read in one pass.
///
/// A reader is the address of a value's state: a reference to an object would be retained and
/// released with each field. A ``ValueDecoder`` keeps the state.
struct ValueReader {
  // Unsafe: whoever uses a reader has the value's decoder, or a container of it.
  let state: UnsafeMutablePointer<ValueState>

  var payload: UnsafeMutablePointer<PayloadState> { state.pointee.payload }
  var place: WirePlace { state.pointee.place }
  var depth: Int { state.pointee.depth }

  var decoder: ValueDecoder {
    guard let decoder = state.pointee.decoder else { preconditionFailure("a value has a decoder") }
    return decoder.takeUnretainedValue()
  }

  var codingPath: [any CodingKey] {
    let path = state.pointee.parent.map { ValueReader(state: $0).codingPath } ?? []
    switch state.pointee.name {
    case .root: return path
    case .key(let key): return path + [key]
    case .index(let index): return path + [PathKey(intValue: index)]
    }
  }

  /// Records that the value ends at `end`.
  @inline(__always)
  func finish(end: Int) {
    payload.pointee.finish(place.offset, depth: depth, end: end)
  }

  /// The decoder of a value within this one.
  @inline(__always)
  func child(_ place: WirePlace, _ name: ValueState.Name) -> ValueDecoder {
    child(place, name, depth: depth + 1)
  }

  @inline(__always)
  func child(_ place: WirePlace, _ name: ValueState.Name, depth: Int) -> ValueDecoder {
    if state.pointee.isLoose { return looseChild(place, name, depth: depth) }
    let payload = payload
    let level = state.pointee.level + 1
    let child =
      payload.pointee.value(level: level) ?? payload.pointee.newValue(of: payload, level: level)
    child.pointee.begin(place, depth: depth, parent: state, name)
    return ValueReader(state: child).decoder
  }

  /// Values inside a loose value are loose, too: the type that kept it owns them.
  @inline(never)
  private func looseChild(
    _ place: WirePlace, _ name: ValueState.Name, depth: Int
  ) -> ValueDecoder {
    let child = ValueDecoder(payload, level: state.pointee.level + 1)
    child.value.state.pointee.begin(place, depth: depth, parent: state, name)
    child.value.state.pointee.isLoose = true
    child.parent = decoder
    child.payload = payload.pointee.owner?.takeUnretainedValue()
    return child
  }
}

// MARK: - Errors

extension ValueReader {
  /// Makes the error for a fault at this value, or at the child named by `name`.
  @inline(never)
  func error(
    _ fault: Fault, _ type: Any.Type, below name: ValueState.Name = .root
  ) -> DecodingError {
    let path: [any CodingKey] =
      switch name {
      case .root: codingPath
      case .key(let key): codingPath + [key]
      case .index(let index): codingPath + [PathKey(intValue: index)]
      }
    func context(_ text: String) -> DecodingError.Context {
      DecodingError.Context(codingPath: path, debugDescription: text)
    }
    switch fault {
    case .malformed: return .dataCorrupted(context(fault.description))
    case .unsuitable(let reason): return .dataCorrupted(context("Not a \(type): \(reason)"))
    case .mismatch(found: .null): return .valueNotFound(type, context("Found null"))
    case .mismatch: return .typeMismatch(type, context(fault.description))
    }
  }
}

// MARK: - Scalars

extension ValueReader {
  /// Reads a scalar at `place`, and sets `end` to where it ends.
  @inline(__always)
  func read<S: WireScalar>(_ place: WirePlace, end: inout Int) throws(Fault) -> S {
    guard place.kind == S.kind else { return try converted(place, end: &end) }
    end = place.offset
    return try S.body(in: payload.pointee.valueBytes, at: &end)
  }

  @inline(never)
  private func converted<S: WireScalar>(_ place: WirePlace, end: inout Int) throws(Fault) -> S {
    guard let payload = payload.pointee.owner else { throw .malformed("no payload") }
    return try S.read(payload.takeUnretainedValue(), place, end: &end)
  }

  /// Reads this value, which is a scalar.
  func scalar<S: WireScalar>() throws -> S {
    do throws(Fault) {
      var end = 0
      let value: S = try read(place, end: &end)
      finish(end: end)
      return value
    } catch {
      throw self.error(error, S.self)
    }
  }
}

// MARK: - Fields

/// The names and offsets of a map's entries.
struct MapEntries {
  var names: [String] = []
  var offsets: [Int] = []
  var indexes: [String: Int] = [:]
  var end = 0
}

extension ValueReader {
  /// A field that is present, or nil.
  typealias Field = (index: Int, place: WirePlace)

  /// Begins to read an object or a map.
  @inline(__always)
  func enterFields() throws {
    if !state.pointee.hasEntered { try enterNewFields() }
  }

  private func enterNewFields() throws {
    let place = place
    do throws(Fault) {
      switch place.kind {
      case .object:
        let fields = try payload.pointee.enter(place, depth: depth)
        state.pointee.fields = fields.start
        state.pointee.fieldCount = fields.count
      case .map: state.pointee.entries = try readEntries()
      default: throw .mismatch(found: place.kind)
      }
    } catch {
      throw self.error(error, [String: Any].self)
    }
    state.pointee.nextOffset = place.offset
    state.pointee.hasEntered = true
  }

  private func readEntries() throws(Fault) -> MapEntries {
    let (place, depth) = (place, depth)
    try payload.pointee.checkDepth(depth)
    var entries = MapEntries()
    var offset = place.offset
    for index in 0..<(try payload.pointee.valueBytes.count(at: &offset, minimum: 2)) {
      let name = try payload.pointee.valueBytes.text(at: &offset)
      guard entries.indexes.updateValue(index, forKey: name) == nil else {
        throw .malformed("a duplicate entry name")
      }
      entries.names.append(name)
      entries.offsets.append(offset)
      offset = try payload.pointee.end(
        of: try payload.pointee.tagged(at: offset), depth: depth + 1)
    }
    entries.end = offset
    // An empty map has no last entry whose end would be recorded.
    if entries.names.isEmpty { finish(end: offset) }
    return entries
  }

  /// The names of all fields, including absent ones.
  var fieldNames: [String] {
    if let entries = state.pointee.entries { return entries.names }
    guard state.pointee.fieldCount > 0 else { return [] }
    return payload.pointee.table?.shapes[place.argument].names ?? []
  }

  /// The index of the field with that name.
  @inline(__always)
  func index(of name: String) -> Int? {
    let next = state.pointee.nextField
    if next < state.pointee.fieldCount, let fields = state.pointee.fields,
      fields[next].name == name
    {
      return next
    }
    return otherIndex(of: name)
  }

  @inline(never)
  private func otherIndex(of name: String) -> Int? {
    if let entries = state.pointee.entries { return entries.indexes[name] }
    guard state.pointee.fieldCount > 0 else { return nil }
    return payload.pointee.table?.shapes[place.argument].index(of: name)
  }

  /// The place of a field's value; nil if it is absent.
  @inline(__always)
  func field(_ index: Int) throws(Fault) -> WirePlace? {
    guard let fields = state.pointee.fields, state.pointee.fieldCount > 0 else {
      return try entry(index)
    }
    if index != state.pointee.nextField { try seek(index, in: fields) }
    return try resolve(fields[index].type, at: state.pointee.nextOffset)
  }

  /// Finds a field; nil if there is none of that name, or it is absent.
  @inline(__always)
  func field(_ name: String) throws(Fault) -> Field? {
    guard let index = index(of: name), let place = try field(index) else { return nil }
    return (index, place)
  }

  /// Finds the body of a value of `type` at `offset`; nil if it is absent, which takes one byte.
  @inline(__always)
  func resolve(_ type: WireType, at offset: Int) throws(Fault) -> WirePlace? {
    if type.kind == .tagged { return try resolveTagged(type, at: offset) }
    guard type.isOptional else {
      return WirePlace(kind: type.kind, argument: type.argument, offset: offset)
    }
    let isPresent = try payload.pointee.valueBytes.presence(at: offset)
    return isPresent ? WirePlace(kind: type.kind, argument: type.argument, offset: offset + 1) : nil
  }

  private func resolveTagged(_ type: WireType, at offset: Int) throws(Fault) -> WirePlace? {
    try payload.pointee.resolve(type, at: offset)
  }

  private func entry(_ index: Int) throws(Fault) -> WirePlace? {
    guard let entries = state.pointee.entries else { return nil }
    state.pointee.nextField = index
    state.pointee.nextOffset = entries.offsets[index]
    return try payload.pointee.tagged(at: state.pointee.nextOffset)
  }

  /// Moves to a field other than the next one.
  @inline(never)
  private func seek(_ index: Int, in fields: UnsafePointer<Shape.Field>) throws(Fault) {
    if index < state.pointee.nextField {
      if state.pointee.offsets.isEmpty {
        var offset = place.offset
        for field in 0..<state.pointee.fieldCount {
          state.pointee.offsets.append(offset)
          offset = try payload.pointee.end(of: fields[field].type, at: offset, depth: depth + 1)
        }
      }
      state.pointee.nextOffset = state.pointee.offsets[index]
      state.pointee.nextField = index
      return
    }
    while state.pointee.nextField < index {
      state.pointee.nextOffset = try payload.pointee.end(
        of: fields[state.pointee.nextField].type, at: state.pointee.nextOffset, depth: depth + 1)
      state.pointee.nextField += 1
    }
  }

  /// Records that the field just read ends at `end`.
  @inline(__always)
  func finishField(_ index: Int, end: Int) {
    guard state.pointee.fieldCount > 0 else { return finishEntry(index) }
    state.pointee.nextField = index + 1
    state.pointee.nextOffset = end
    if index + 1 == state.pointee.fieldCount { finish(end: end) }
  }

  private func finishEntry(_ index: Int) {
    guard let entries = state.pointee.entries, index == entries.names.count - 1 else { return }
    finish(end: entries.end)
  }

  /// Records that the field at `place` was just read, if its end is known.
  @inline(__always)
  func finishField(_ index: Int, after place: WirePlace) {
    if let end = payload.pointee.knownEnd(of: place, depth: depth + 1) {
      finishField(index, end: end)
    }
  }

  /// Finds an optional field; nil if it is absent or null.
  @inline(__always)
  func optionalField(_ name: String) throws(Fault) -> Field? {
    guard let index = index(of: name) else { return nil }
    guard let place = try field(index) else {
      // The next field need not be sought.
      if state.pointee.fieldCount > 0 {
        finishField(index, end: state.pointee.nextOffset + 1)
      }
      return nil
    }
    return place.kind == .null ? nil : (index, place)
  }

  /// Reads a field that is a scalar; nil if it is absent.
  @inline(__always)
  func scalar<S: WireScalar>(_ name: String) throws(Fault) -> S? {
    guard let (index, place) = try field(name) else { return nil }
    return try scalar(index, place)
  }

  /// Reads an optional field that is a scalar; nil if it is absent or null.
  @inline(__always)
  func optionalScalar<S: WireScalar>(_ name: String) throws(Fault) -> S? {
    guard let (index, place) = try optionalField(name) else { return nil }
    return try scalar(index, place)
  }

  @inline(__always)
  private func scalar<S: WireScalar>(_ index: Int, _ place: WirePlace) throws(Fault) -> S {
    var end = 0
    let value: S = try read(place, end: &end)
    finishField(index, end: end)
    return value
  }
}
