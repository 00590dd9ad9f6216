import Foundation
import LarderBytes

/// Encodes a value straight into bytes, as its type hands over one part behind the other.
///
/// What a type does out of order cannot be done so: filling a container behind one that was begun
/// later, an encoder for a superclass, setting a field twice, asking for the path. Then the stream
/// is abandoned, and the value is encoded once more, into a tree.
final class Stream {
  /// A list, map or object that is not yet at its end.
  private struct Frame {
    enum Form { case list, map, object }

    let id: Int
    let form: Form
    /// Where the number of elements or entries stands, or the number of the shape.
    let place: Int
    /// How many elements, entries or fields there are so far.
    var count = 0
    /// The shape that the object has so far, or seems to have; -1 if there is none yet.
    var shape = -1
    /// Whether the shape grows with the object.
    var isNew = false
    var keyType = ObjectIdentifier(Never.self)
  }

  /// What is to be known of a type to encode its values.
  private enum TypeForm { case scalar, list, map, other }

  /// What is written into: while a payload is, the caller's.
  @exclusivity(unchecked) var bytes = ByteBuffer()

  // Unchecked here and in the coder's other classes: one call has one, on one thread, and no
  // property is read or set while a call that could set it is under way. The checks took a fifth
  // of the time.
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
  /// How many frames there can be.
  private let maximumFrames: Int

  // The value that encodes itself: its number, where it begins, the frames around it.
  @exclusivity(unchecked) fileprivate var activeID = 0
  @exclusivity(unchecked) private var activeStart = 0
  @exclusivity(unchecked) private var activeLevel = 0
  @exclusivity(unchecked) private var activeIsMap = false

  /// Makes a stream for whole payloads, or for values that are `depth` containers deep in one that
  /// somebody else writes, and which has the first shape.
  init(within depth: Int = 0) {
    maximumFrames = Binary.maximumDepth - depth
    shapes = StreamShapes(reserved: depth == 0 ? 0 : 1)
  }

  /// Gives the stream up.
  ///
  /// Whatever is still handed over goes nowhere.
  func abandon() {
    isAbandoned = true
    frames = []
    activeID = -1
  }

  /// Appends the payload of `value`; false if the stream was abandoned, and then `buffer` is as it
  /// was.
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
      // The tree tells where it happened, or there is no error but the stream's own.
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

  /// Appends a value, tagged, to a payload that somebody else writes; false if the stream was
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

  /// How many shapes there are of the values that were written.
  var shapeCount: Int { shapes.count }

  /// Appends them to a table.
  func appendShapes(to bytes: inout ByteBuffer) { shapes.appendEntries(to: &bytes) }

  /// Makes the stream ready for another payload; false if it should not be used again.
  func reset() -> Bool {
    guard !isAbandoned else { return false }
    shapes.reset()
    return true
  }
}

// @unchecked: one call at a time has a stream. `Binary.spare` gives it away whole, and gets it back
// only if nobody else has kept it.
extension Stream: @unchecked Sendable {}

/// The stream was given up.
struct StreamAbandoned: Error {}

// MARK: - Values

extension Stream {
  /// Writes a value with its type before it.
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
    guard nesting < Binary.maximumNesting, !isAbandoned else { throw givenUp() }
    nesting += 1
    lastID += 1
    (activeID, activeStart, activeLevel, activeIsMap) = (lastID, bytes.count, frames.count, isMap)
    do {
      try place.value.encode(to: StreamEncoder(stream: self, id: lastID, level: frames.count))
    } catch {
      // Somebody may go on after it, and what was written so far would stay.
      abandon()
      throw error
    }
    while frames.count > activeLevel { close() }
    guard !isAbandoned else { throw StreamAbandoned() }
    if bytes.count == activeStart { writeEmptyMap() }
    nesting -= 1
    (activeID, activeStart, activeLevel, activeIsMap) = outer
  }

  /// Gives the stream up for good: whoever catches the error may go on behind what has no value.
  private func givenUp() -> StreamAbandoned {
    abandon()
    return StreamAbandoned()
  }

  private func writeEmptyMap() {
    bytes.append(Kind.map.rawValue)
    bytes.append(littleEndian: UInt32(0))
  }
}

// MARK: - Frames

extension Stream {
  /// The place of a container: the frame's number in the stack, and its own.
  struct Handle {
    var level: Int
    var id: Int
    static var dead: Handle { Handle(level: 0, id: -1) }
  }

  /// Whether nothing was written yet by the value of that number, which is encoding itself.
  func isUntouched(_ id: Int) -> Bool { activeID == id && bytes.count == activeStart }

  /// Begins the object or map of the value of that number, or finds the one that it has begun.
  func fields(ofValue id: Int, keyType: Any.Type) -> Handle {
    guard activeID == id else { return abandoned() }
    if bytes.count == activeStart {
      return activeIsMap ? open(.map) : open(.object, keyType: keyType)
    }
    guard frames.count > activeLevel, frames[activeLevel].form != .list else {
      return abandoned()
    }
    return Handle(level: activeLevel, id: frames[activeLevel].id)
  }

  func elements(ofValue id: Int) -> Handle {
    guard activeID == id else { return abandoned() }
    if bytes.count == activeStart { return open(.list) }
    guard frames.count > activeLevel, frames[activeLevel].form == .list else {
      return abandoned()
    }
    return Handle(level: activeLevel, id: frames[activeLevel].id)
  }

  func abandoned() -> Handle {
    abandon()
    return .dead
  }

  private func open(_ form: Frame.Form, keyType: Any.Type? = nil) -> Handle {
    guard frames.count < maximumFrames else { return abandoned() }
    lastID += 1
    switch form {
    case .object:
      bytes.append(Kind.object.rawValue)
      var frame = Frame(id: lastID, form: form, place: bytes.count)
      frame.keyType = ObjectIdentifier(keyType ?? Never.self)
      frame.shape = shapes.predicted(for: frame.keyType)
      // The number is set at the end.
      bytes.append(0)
      frames.append(frame)
    case .list, .map:
      bytes.append(form == .list ? Kind.list.rawValue : Kind.map.rawValue)
      if form == .list { bytes.append(Kind.tagged.rawValue) }
      frames.append(Frame(id: lastID, form: form, place: bytes.count))
      bytes.append(littleEndian: UInt32(0))
    }
    return Handle(level: frames.count - 1, id: lastID)
  }

  /// Begins a container in a field or element that was just begun.
  func openNested(keyType: Any.Type?) -> Handle {
    guard let keyType else { return open(.list) }
    return open(.object, keyType: keyType)
  }

  /// Makes a container the innermost, and ends those within it; false if it has ended itself.
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

  /// How a field is to be written.
  enum Field { case abandoned, body, entry }

  /// Begins a field of an object, or an entry of a map, which is not begun if it `isAbsent`.
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

  func close() {
    let frame = frames.removeLast()
    guard frame.form == .object else {
      return bytes.set(UInt32(clamping: frame.count), at: frame.place)
    }
    if frame.count == 0 {
      // An object without fields: a map without entries, in its place.
      bytes.truncate(to: frame.place - 1)
      return writeEmptyMap()
    }
    guard
      let number = shapes.end(
        frame.shape, fields: frame.count, isNew: frame.isNew, keyType: frame.keyType)
    else { return abandon() }
    bytes.set(number, at: frame.place)
  }

  /// Finds another shape for an object whose next field is not that of the shape it seemed to have.
  private func addField(_ level: Int, _ name: String, _ kind: UInt8) -> Bool {
    let frame = frames[level]
    if !frame.isNew {
      if let shape = shapes.whole(after: frame.count, of: frame.shape, name, kind) {
        frames[level].shape = shape
        frames[level].count += 1
        return true
      }
      guard let shape = shapes.begin(frame.count, of: frame.shape) else { return giveUp() }
      frames[level].shape = shape
      frames[level].isNew = true
    }
    // One field of a name; that it is set twice is for the tree.
    guard shapes.add(name, kind, to: frames[level].shape) else { return giveUp() }
    frames[level].count += 1
    return true
  }

  private func giveUp() -> Bool {
    abandon()
    return false
  }
}

// MARK: - Lists

/// A list that is written without a container.
protocol StreamList {
  func write(to stream: Stream) throws
}

extension Array: StreamList where Element: Encodable {
  func write(to stream: Stream) throws {
    if let kind = scalarKind {
      try stream.writeScalars(of: kind, in: self)
    } else {
      try stream.writeElements(of: self)
    }
  }
}

extension Stream {
  fileprivate func writeScalars(of kind: Kind, in list: some ScalarList) throws {
    guard frames.count < maximumFrames else { throw givenUp() }
    bytes.append(list, of: kind)
  }

  fileprivate func writeElements<T: Encodable>(of list: [T]) throws {
    let handle = open(.list)
    guard handle.id >= 0 else { throw StreamAbandoned() }
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
