import Foundation

/// Encodes a value straight into bytes, while its type hands over one part after the other.
///
/// A type may also work out of order: fill a container after beginning a later one, set a field
/// twice, or ask for the coding path. The writer then abandons the stream, and
/// the value is encoded again by way of a ``Tree``.
///
/// A writer is the address of a stream's state: a reference to an object would be retained and
/// released with each field. A ``StreamLink`` says whether there still is a state.
package struct StreamWriter {
  // Unsafe: a `PayloadWriter` owns the state, and cuts all links before it frees it. No access to
  // the state lasts while a type encodes itself.
  let state: UnsafeMutablePointer<StreamState>

  /// Abandons the stream; everything that is handed over from now on is ignored.
  func abandon() {
    state.pointee.isAbandoned = true
    state.pointee.frameCount = 0
    state.pointee.active.openID = 0
    state.pointee.active.id = 0
  }
}

/// The error thrown after the writer has abandoned the stream.
struct StreamAbandoned: Error {}

// MARK: - Values

extension StreamWriter {
  /// Writes a tagged value: its type, followed by its body.
  @inline(__always)
  func encode<T: Encodable>(_ value: T) throws { try encode(value, form(of: value)) }

  func encode<T: Encodable>(_ value: T, _ form: TypeForm) throws {
    var isMap = false
    switch form {
    case .other: break
    case .map: isMap = true
    case .list(let type):
      return try withUnsafePointer(to: value) { try type.write(at: $0, to: self) }
    case .part(let part): return try encode(value, by: part)
    case .url: return scalar(value, as: URL.self)
    case .string: return scalar(value, as: String.self)
    case .named(let type), .scalar(let type): return scalar(value, as: type)
    }
    let outer = try beginValue(isMap: isMap)
    do {
      try Self.encode(value, to: encoder.pointee)
    } catch {
      // A type may catch the error and continue after a part of a value.
      abandon()
      throw error
    }
    try endValue(within: outer)
  }

  @inline(__always)
  private static func encode(
    _ value: some Encodable, to encoder: borrowing InPlace<any Encoder>
  ) throws {
    try value.encode(to: encoder.value)
  }

  /// Writes the value at `place` tagged, without copying it.
  @inline(__always)
  func encode<T: Encodable>(at place: UnsafePointer<T>, _ form: TypeForm) throws {
    try encode(place.inPlace.pointee, form)
  }

  @inline(__always)
  private func encode<T: Encodable>(_ place: borrowing InPlace<T>, _ form: TypeForm) throws {
    try encode(place.value, form)
  }

  @inline(__always)
  func scalar<S: WireScalar>(_ value: S) {
    state.pointee.bytes.append(S.kind.rawValue)
    value.append(to: &state.pointee.bytes)
  }

  @inline(__always)
  private func scalar<T>(_ value: T, as type: any WireScalar.Type) {
    state.pointee.bytes.append(type.kind.rawValue)
    body(value, as: type)
  }

  /// Writes the body of a scalar, or of an optional with a scalar.
  @inline(__always)
  func body<T>(_ value: T, as type: any WireScalar.Type) {
    // Unsafe: a value that is present is at the start of its optional.
    withUnsafePointer(to: value) { unsafe type.append(at: $0, to: &state.pointee.bytes) }
  }

  func null() { state.pointee.bytes.append(WireKind.null.rawValue) }
}

extension StreamWriter {
  @inline(__always)
  func form(of type: Any.Type) -> TypeForm { state.pointee.forms.form(of: type) }

  /// How a value is written.
  @inline(__always)
  func form<T>(of value: T) -> TypeForm { form(of: value, type: T.self) }

  /// How the value of an optional is written, which is present.
  @inline(__always)
  func form<T>(ofPresent value: T?) -> TypeForm { form(of: value, type: T.self) }

  @inline(__always)
  private func form<T>(of value: T, type: Any.Type) -> TypeForm {
    let form = form(of: type)
    guard case .url = form else { return form }
    // Unsafe: a value that is present is at the start of its optional.
    return withUnsafePointer(to: value) { unsafe URL.hasNoBase(at: $0) ? form : .other }
  }

  /// Makes a value the active one, and returns the one around it.
  private func beginValue(isMap: Bool) throws -> StreamState.Active {
    let outer = state.pointee.active
    guard outer.nesting < Binary.maximumNesting, !state.pointee.isAbandoned else {
      // A type may catch the error and continue after a field that has no value.
      abandon()
      throw StreamAbandoned()
    }
    state.pointee.lastID += 1
    state.pointee.active = StreamState.Active(
      id: state.pointee.lastID, start: state.pointee.bytes.count,
      level: state.pointee.frameCount, nesting: outer.nesting + 1, isMap: isMap)
    return outer
  }

  /// The encoder of the active value.
  @inline(__always)
  private var encoder: UnsafePointer<InPlace<any Encoder>> {
    let active = state.pointee.active
    return state.pointee.links.encoder(
      of: StreamLink.Target(writer: self, id: active.id, level: 0), nesting: active.nesting - 1)
  }

  /// Ends the active value, and makes the one around it active again.
  private func endValue(within outer: StreamState.Active) throws {
    while state.pointee.frameCount > state.pointee.active.level { close() }
    guard !state.pointee.isAbandoned else { throw StreamAbandoned() }
    if state.pointee.bytes.count == state.pointee.active.start { writeEmptyMap() }
    state.pointee.active = outer
  }

  func writeEmptyMap() {
    state.pointee.bytes.append(WireKind.map.rawValue)
    state.pointee.bytes.append(littleEndian: UInt32(0))
  }
}

// MARK: - Containers

extension StreamWriter {
  /// Whether value number `id` is encoding itself and has written nothing yet.
  func isUntouched(_ id: Int) -> Bool {
    state.pointee.active.id == id && state.pointee.bytes.count == state.pointee.active.start
  }

  /// Begins the object or map of an encoder, or finds the one that it has begun.
  func fields<Key: CodingKey>(ofValue encoder: StreamLink.Target) -> KeyedEncodingContainer<Key> {
    guard isUntouched(encoder.id) else {
      return fields(of: frame(of: encoder, or: { openObject(Key.self) }) { $0.isKeyed })
    }
    return fields(of: state.pointee.active.isMap ? open(.map) : openObject(Key.self))
  }

  /// Begins the list of an encoder, or finds the one that it has begun.
  func elements(ofValue encoder: StreamLink.Target) -> StreamElements {
    guard isUntouched(encoder.id) else {
      return elements(of: frame(of: encoder, or: { open(.list) }) { $0 == .list })
    }
    return elements(of: open(.list))
  }

  /// Begins an object in the field or element that was just begun.
  func nestedFields<Key: CodingKey>() -> KeyedEncodingContainer<Key> {
    fields(of: openObject(Key.self))
  }

  /// Begins a list in the field or element that was just begun.
  func nestedElements() -> StreamElements { elements(of: open(.list)) }

  /// Finds the frame that an encoder has begun.
  ///
  /// A super encoder that has written nothing begins one with `open`. If there is no frame of the
  /// right form, the stream is abandoned and the result is nil.
  @inline(never)
  private func frame(
    of encoder: StreamLink.Target, or open: () -> StreamLink.Target?,
    _ isForm: (StreamState.Frame.Form) -> Bool
  ) -> StreamLink.Target? {
    if endPlaceholder(of: encoder) {
      guard open() != nil else { return nil }
      // The encoder may be asked for the container again.
      state.pointee.frames[encoder.level].id = encoder.id
      state.pointee.active.openID = encoder.id
      return encoder
    }
    let isActive = state.pointee.active.id == encoder.id
    let level = isActive ? state.pointee.active.level : encoder.level
    guard state.pointee.frameCount > level,
      isForm(state.pointee.frames[level].form),
      isActive || state.pointee.frames[level].id == encoder.id
    else {
      abandon()
      return nil
    }
    return StreamLink.Target(writer: self, id: state.pointee.frames[level].id, level: level)
  }

  /// The container for a frame, or one that refuses everything.
  @inline(__always)
  private func fields<Key: CodingKey>(of frame: StreamLink.Target?) -> KeyedEncodingContainer<Key> {
    guard let frame else { return .refusing }
    let place = state.pointee.links.container(of: frame, keyType: ObjectIdentifier(Key.self))
    guard let place else { return newFields(of: frame) }
    // Unsafe: the containers of a type of keys are of one type.
    return Self.copy(
      unsafe place.assumingMemoryBound(
        to: InPlace<Original<KeyedEncodingContainer<Key>>>.self
      ).pointee)
  }

  /// Returns a copy of a container without retaining its original.
  @inline(__always)
  private static func copy<Key: CodingKey>(
    _ original: borrowing InPlace<Original<KeyedEncodingContainer<Key>>>
  ) -> KeyedEncodingContainer<Key> {
    original.value.copy()
  }

  @inline(never)
  private func newFields<Key: CodingKey>(
    of frame: StreamLink.Target
  ) -> KeyedEncodingContainer<Key> {
    let link = StreamLink()
    let container = KeyedEncodingContainer(StreamFields<Key>(link: link))
    state.pointee.links.add(container, link, of: frame, keyType: ObjectIdentifier(Key.self))
    return container
  }

  private func elements(of frame: StreamLink.Target?) -> StreamElements {
    guard let frame else { return .refusing }
    return StreamElements(link: state.pointee.links.link(of: frame))
  }
}

// MARK: - Lists

/// A list type that is encoded without an unkeyed container.
protocol StreamList {
  /// Writes the list at `place`, tagged.
  static func write(at place: UnsafeRawPointer, to writer: StreamWriter) throws
}

extension Array: StreamList where Element: Encodable {
  static func write(at place: UnsafeRawPointer, to writer: StreamWriter) throws {
    // Unsafe: the caller knows the type by its form.
    let list = unsafe place.assumingMemoryBound(to: Self.self).pointee
    if let kind = list.scalarKind {
      try writer.writeScalars(of: kind, in: list)
    } else {
      try writer.writeElements(of: list)
    }
  }
}

extension StreamWriter {
  fileprivate func writeScalars(of kind: WireKind, in list: some ScalarList) throws {
    guard state.pointee.frameCount < state.pointee.maximumFrames else {
      abandon()
      throw StreamAbandoned()
    }
    state.pointee.bytes.append(list, of: kind)
  }

  fileprivate func writeElements<T: Encodable>(of list: [T]) throws {
    guard let frame = open(.list) else { throw StreamAbandoned() }
    state.pointee.frames[frame.level].count = list.count
    let form = form(of: T.self)
    if case .url = form {
      // Some of them have a base.
      for url in list { try encode(url) }
    } else {
      try list.withUnsafeBufferPointer { list in
        guard let start = list.baseAddress else { return }
        for index in list.indices { try encode(at: start + index, form) }
      }
    }
    close()
  }
}
