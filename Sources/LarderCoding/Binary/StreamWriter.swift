import Foundation
import LarderBytes

/// Encodes a value straight into bytes, while its type hands over one part after the other.
///
/// A type may also work out of order: fill a container after beginning a later one, use a super
/// encoder, set a field twice, or ask for the coding path. The writer then abandons the stream, and
/// the value is encoded again by way of a ``Tree``.
final class StreamWriter {
  /// A list, map or object that has not ended yet.
  private struct Frame {
    enum Form { case list, map, object }

    let id: Int
    let form: Form
    /// The offset of the number of elements or entries, or of the shape's number.
    let head: Int
    /// The number of elements, entries or fields so far.
    var count = 0
    /// The object's shape so far, or the predicted one; nil if there is none yet.
    var shape: Int?
    /// Whether the shape is new, and grows with the object.
    var isNew = false
    var keyType = ObjectIdentifier(Never.self)
  }

  /// How the values of a type are encoded.
  private enum TypeForm { case scalar, list, map, other }

  /// The bytes written so far; the caller's buffer while a payload is written.
  @exclusivity(unchecked) var bytes = ByteBuffer()

  // Exclusivity is unchecked here and in the coder's other classes: each instance is used by one
  // call on one thread, and no property is accessed during a call that could change it. The checks
  // would take a fifth of the encoding time.
  @exclusivity(unchecked)
  private(set) var isAbandoned = false
  @exclusivity(unchecked) private var frames: [Frame] = []
  @exclusivity(unchecked) private var shapes: StreamShapes
  @exclusivity(unchecked) private var forms: [ObjectIdentifier: TypeForm] = [:]
  @exclusivity(unchecked) private var lastForm: (type: ObjectIdentifier, form: TypeForm) = (
    ObjectIdentifier(Never.self), .other
  )
  @exclusivity(unchecked) private var nesting = 0
  @exclusivity(unchecked) private var lastID = 0
  /// The largest number of open frames.
  private let maximumFrames: Int

  // The value that is encoding itself: its number, its offset, the number of frames around it.
  /// Nil once the stream is abandoned.
  @exclusivity(unchecked) fileprivate var activeID: Int? = 0
  @exclusivity(unchecked) private var activeStart = 0
  @exclusivity(unchecked) private var activeLevel = 0
  @exclusivity(unchecked) private var activeIsMap = false

  /// Makes a writer for whole payloads.
  ///
  /// With a `depth`, the writer writes parts of a payload that a ``DirectWriter`` writes: values
  /// with `depth` containers around them. The payload's first shape is the direct writer's.
  init(within depth: Int = 0) {
    maximumFrames = Binary.maximumDepth - depth
    shapes = StreamShapes(reserved: depth == 0 ? 0 : 1)
  }

  /// Abandons the stream; everything that is handed over from now on is ignored.
  func abandon() {
    isAbandoned = true
    frames = []
    activeID = nil
  }

  /// Appends the payload of `value`; false, with `buffer` unchanged, if the value needs a tree.
  func write(_ value: some Encodable, into buffer: inout ByteBuffer) -> Bool {
    let start = buffer.count
    swap(&bytes, &buffer)
    defer { swap(&bytes, &buffer) }
    if write(value, at: start) { return true }
    bytes.truncate(to: start)
    return false
  }

  private func write(_ value: some Encodable, at start: Int) -> Bool {
    nesting = 0
    (activeID, activeStart, activeLevel, activeIsMap) = (0, start, 0, false)
    bytes.append(Binary.version)
    bytes.append(littleEndian: UInt32(0))
    do {
      try encode(value)
    } catch {
      // An error of the type's own is reported by the tree, with its coding path.
      abandon()
    }
    guard !isAbandoned else { return false }
    let size = bytes.count - start - Binary.headBytes
    bytes.set(UInt32(clamping: size), at: start + Binary.sizeOffset)
    return writeShapes()
  }

  private func writeShapes() -> Bool {
    let start = bytes.count
    shapes.append(to: &bytes)
    return bytes.count - start <= Binary.maximumTableBytes
  }

  /// Appends a value, tagged, to the payload of a ``DirectWriter``; false if the stream was
  /// abandoned.
  func writePart(_ value: some Encodable, into buffer: inout ByteBuffer) -> Bool {
    swap(&bytes, &buffer)
    defer { swap(&bytes, &buffer) }
    (activeID, activeStart, activeLevel, activeIsMap) = (0, bytes.count, 0, false)
    do {
      try encode(value)
    } catch {
      abandon()
    }
    return !isAbandoned
  }

  /// The number of shapes used by the values of this payload.
  var shapeCount: Int { shapes.count }

  /// Appends the shapes to a table.
  func appendShapes(to bytes: inout ByteBuffer) { shapes.appendEntries(to: &bytes) }

  /// Prepares the writer for another payload; false if the stream was abandoned.
  func reset() -> Bool {
    guard !isAbandoned else { return false }
    shapes.reset()
    return true
  }
}

// @unchecked: one call at a time uses a writer. A call takes it out of `Binary.spare`, and returns
// it only if it holds the only reference.
extension StreamWriter: @unchecked Sendable {}

/// The error thrown after the writer has abandoned the stream.
struct StreamAbandoned: Error {}

// MARK: - Values

extension StreamWriter {
  /// Writes a tagged value: its type, followed by its body.
  @inline(__always)
  func encode<T: Encodable>(_ value: T) throws {
    if try encodeCommon(value) { return }
    try encodeOther(value)
  }

  func scalar<S: WireScalar>(_ value: S) {
    bytes.append(S.kind.rawValue)
    value.append(to: &bytes)
  }

  private func encodeCommon<T>(_ value: T) throws -> Bool {
    if T.self == String.self {
      scalar(same(value, String.self))
    } else if T.self == Int.self {
      scalar(same(value, Int.self))
    } else if T.self == URL.self {
      let url = same(value, URL.self)
      guard url.baseURL == nil else { return false }
      scalar(url)
    } else if T.self == UUID.self {
      scalar(same(value, UUID.self))
    } else if T.self == Date.self {
      scalar(same(value, Date.self))
    } else if T.self == Data.self {
      scalar(same(value, Data.self))
    } else {
      return false
    }
    return true
  }

  private func encodeOther<T: Encodable>(_ value: T) throws {
    if frames.count < maximumFrames, bytes.appendCommonList(value) { return }
    let form = form(of: T.self)
    if form == .scalar, T.self != URL.self, let scalar = value as? any WireScalar {
      self.scalar(scalar)
    } else if form == .list, let list = value as? any StreamList {
      try list.write(to: self)
    } else {
      try encodeItself(InPlace(value: value), isMap: form == .map)
    }
  }

  private func form(of type: Any.Type) -> TypeForm {
    if lastForm.type == ObjectIdentifier(type) { return lastForm.form }
    if let form = forms[ObjectIdentifier(type)] {
      lastForm = (ObjectIdentifier(type), form)
      return form
    }
    let form: TypeForm
    if type is any WireScalar.Type {
      form = .scalar
    } else if type is any StreamList.Type {
      form = .list
    } else {
      form = (type as? any MapLike.Type)?.hasDistinctNames == true ? .map : .other
    }
    forms[ObjectIdentifier(type)] = form
    return form
  }

  private func encodeItself<T: Encodable>(
    _ place: borrowing InPlace<T>, isMap: Bool
  ) throws {
    let outer = (activeID, activeStart, activeLevel, activeIsMap)
    guard nesting < Binary.maximumNesting, !isAbandoned else {
      // A type may catch the error and continue after a field that has no value.
      abandon()
      throw StreamAbandoned()
    }
    nesting += 1
    lastID += 1
    (activeID, activeStart, activeLevel, activeIsMap) = (lastID, bytes.count, frames.count, isMap)
    do {
      try place.value.encode(to: StreamEncoder(writer: self, id: lastID, level: frames.count))
    } catch {
      // A type may catch the error and continue after a part of a value.
      abandon()
      throw error
    }
    while frames.count > activeLevel { close() }
    guard !isAbandoned else { throw StreamAbandoned() }
    if bytes.count == activeStart { writeEmptyMap() }
    nesting -= 1
    (activeID, activeStart, activeLevel, activeIsMap) = outer
  }

  private func writeEmptyMap() {
    bytes.append(Kind.map.rawValue)
    bytes.append(littleEndian: UInt32(0))
  }
}

// MARK: - Frames

extension StreamWriter {
  /// Identifies a container by its frame's index in the stack and its own number.
  struct Handle {
    var level: Int
    var id: Int

    /// The handle of an abandoned stream, which has no frame's number.
    static var dead: Handle { Handle(level: 0, id: -1) }
    var isDead: Bool { id < 0 }
  }

  /// Whether value number `id` is encoding itself and has written nothing yet.
  func isUntouched(_ id: Int) -> Bool { activeID == id && bytes.count == activeStart }

  /// Begins the object or map of value number `id`, or finds the one that it has begun.
  func fields(ofValue id: Int, keyType: Any.Type) -> Handle {
    guard activeID == id else { return deadHandle() }
    if bytes.count == activeStart {
      return activeIsMap ? open(.map) : open(.object, keyType: keyType)
    }
    guard frames.count > activeLevel, frames[activeLevel].form != .list else {
      return deadHandle()
    }
    return Handle(level: activeLevel, id: frames[activeLevel].id)
  }

  /// Begins the list of value number `id`, or finds the one that it has begun.
  func elements(ofValue id: Int) -> Handle {
    guard activeID == id else { return deadHandle() }
    if bytes.count == activeStart { return open(.list) }
    guard frames.count > activeLevel, frames[activeLevel].form == .list else {
      return deadHandle()
    }
    return Handle(level: activeLevel, id: frames[activeLevel].id)
  }

  /// Abandons the stream, for a function that returns a handle.
  private func deadHandle() -> Handle {
    abandon()
    return .dead
  }

  private func open(_ form: Frame.Form, keyType: Any.Type? = nil) -> Handle {
    guard frames.count < maximumFrames else { return deadHandle() }
    lastID += 1
    switch form {
    case .object:
      bytes.append(Kind.object.rawValue)
      var frame = Frame(id: lastID, form: form, head: bytes.count)
      frame.keyType = ObjectIdentifier(keyType ?? Never.self)
      frame.shape = shapes.predicted(for: frame.keyType)
      // The shape's number is set when the object ends.
      bytes.append(0)
      frames.append(frame)
    case .list, .map:
      bytes.append(form == .list ? Kind.list.rawValue : Kind.map.rawValue)
      if form == .list { bytes.append(Kind.tagged.rawValue) }
      frames.append(Frame(id: lastID, form: form, head: bytes.count))
      bytes.append(littleEndian: UInt32(0))
    }
    return Handle(level: frames.count - 1, id: lastID)
  }

  /// Begins a container in the field or element that was just begun.
  func openNested(keyType: Any.Type?) -> Handle {
    guard let keyType else { return open(.list) }
    return open(.object, keyType: keyType)
  }

  /// Makes a container the innermost by ending those within it; false if it has ended already.
  @inline(__always)
  private func enter(_ handle: Handle) -> Bool {
    if frames.count - 1 == handle.level, frames[handle.level].id == handle.id,
      handle.level >= activeLevel
    {
      return true
    }
    return enterAgain(handle)
  }

  private func enterAgain(_ handle: Handle) -> Bool {
    guard handle.level < frames.count, frames[handle.level].id == handle.id,
      handle.level >= activeLevel
    else {
      abandon()
      return false
    }
    while frames.count - 1 > handle.level { close() }
    return !isAbandoned
  }

  /// The number of elements, entries or fields written to a container.
  func count(of handle: Handle) -> Int {
    handle.level < frames.count && frames[handle.level].id == handle.id
      ? frames[handle.level].count : 0
  }

  /// Begins an element of a list; false if the stream is abandoned.
  func element(of handle: Handle) -> Bool {
    guard enter(handle) else { return false }
    frames[handle.level].count += 1
    return true
  }

  /// How the caller must write a field: not at all, as a body, or tagged as a map's entry.
  enum Field { case abandoned, body, entry }

  /// Begins a field of an object, or an entry of a map unless it `isAbsent`.
  @inline(__always)
  func field(
    of handle: Handle, _ name: String, _ kind: UInt8, isAbsent: Bool = false
  ) -> Field {
    guard enter(handle) else { return .abandoned }
    let frame = frames[handle.level]
    if frame.form == .map {
      if isAbsent { return .entry }
      bytes.append(text: name)
      frames[handle.level].count += 1
      return .entry
    }
    if !frame.isNew, shapes.has(frame.shape, frame.count, name, kind) {
      frames[handle.level].count += 1
      return .body
    }
    return addField(handle.level, name, kind) ? .body : .abandoned
  }

  /// Ends the innermost container.
  func close() {
    let frame = frames.removeLast()
    guard frame.form == .object else {
      return bytes.set(UInt32(clamping: frame.count), at: frame.head)
    }
    if frame.count == 0 {
      // An object without fields is written as an empty map.
      bytes.truncate(to: frame.head - 1)
      return writeEmptyMap()
    }
    guard let shape = frame.shape,
      let number = shapes.end(
        shape, fields: frame.count, isNew: frame.isNew, keyType: frame.keyType)
    else { return abandon() }
    bytes.set(number, at: frame.head)
  }

  /// Finds or begins a shape for an object whose next field differs from the predicted shape's;
  /// false if the stream is abandoned.
  private func addField(_ level: Int, _ name: String, _ kind: UInt8) -> Bool {
    let frame = frames[level]
    if !frame.isNew {
      if let shape = shapes.whole(after: frame.count, of: frame.shape, name, kind) {
        frames[level].shape = shape
        frames[level].count += 1
        return true
      }
      guard let shape = shapes.begin(frame.count, of: frame.shape) else {
        abandon()
        return false
      }
      frames[level].shape = shape
      frames[level].isNew = true
    }
    // A shape has one field of a name; the tree handles a field that is set twice.
    guard let shape = frames[level].shape, shapes.add(name, kind, to: shape) else {
      abandon()
      return false
    }
    frames[level].count += 1
    return true
  }
}

// MARK: - Lists

/// A list type that is encoded without an unkeyed container.
protocol StreamList {
  func write(to writer: StreamWriter) throws
}

extension Array: StreamList where Element: Encodable {
  func write(to writer: StreamWriter) throws {
    if let kind = scalarKind {
      try writer.writeScalars(of: kind, in: self)
    } else {
      try writer.writeElements(of: self)
    }
  }
}

extension StreamWriter {
  fileprivate func writeScalars(of kind: Kind, in list: some ScalarList) throws {
    guard frames.count < maximumFrames else {
      abandon()
      throw StreamAbandoned()
    }
    bytes.append(list, of: kind)
  }

  fileprivate func writeElements<T: Encodable>(of list: [T]) throws {
    let handle = open(.list)
    guard !handle.isDead else { throw StreamAbandoned() }
    frames[handle.level].count = list.count
    let form = form(of: T.self)
    if form == .map || form == .other {
      try list.withUnsafeBufferPointer { list in
        guard let places = list.inPlace else { return }
        for index in list.indices { try encodeItself(places[index], isMap: form == .map) }
      }
    } else {
      for element in list { try encode(element) }
    }
    close()
  }
}
