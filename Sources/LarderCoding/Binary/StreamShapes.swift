import LarderBytes

/// The shapes of the objects that a ``StreamWriter`` has written, in this and in earlier payloads.
///
/// A shape gets its number in a payload when the first object with it ends. A payload's bytes
/// therefore do not depend on the payloads written before it.
struct StreamShapes {
  private struct Shape {
    var names: [String] = []
    var kinds: [UInt8] = []
    /// Whether an object with exactly these fields has ended.
    var isWhole = false
    /// The payload for which ``number`` is valid.
    var payload = 0
    var number: UInt8 = 0
  }

  /// The largest number of shapes kept from one payload to the next.
  private static let maximumKept = 256
  /// The largest number of shapes that can be begun; many of them turn out equal to a known one.
  private static let maximum = 2048

  /// The number of the payload's shapes that precede these and belong to a ``DirectWriter``.
  private let reserved: Int
  private var shapes: [Shape] = []
  /// The shapes of this payload, by their numbers.
  private var used: [Int] = []
  private var payload = 1
  /// The shape of the last object with each type of keys.
  private var predictions: [(keyType: ObjectIdentifier, shape: Int)] = []

  init(reserved: Int) { self.reserved = reserved }

  /// The number of shapes used in this payload.
  var count: Int { used.count }

  /// Begins another payload.
  mutating func reset() {
    payload += 1
    used.removeAll(keepingCapacity: true)
    if shapes.count > Self.maximumKept || predictions.count > 32 {
      shapes = []
      predictions = []
    }
  }

  /// Appends the table of shapes.
  func append(to bytes: inout ByteBuffer) {
    bytes.append(UInt8(used.count))
    appendEntries(to: &bytes)
  }

  /// Appends the table without the number of shapes.
  func appendEntries(to bytes: inout ByteBuffer) {
    for index in used {
      bytes.append(varint: UInt64(shapes[index].names.count))
      for (name, kind) in zip(shapes[index].names, shapes[index].kinds) {
        bytes.append(kind)
        bytes.append(text: name)
      }
    }
  }

  // MARK: - Finding

  /// The shape of the last object with that type of keys; nil if there was none.
  @inline(__always)
  func predicted(for keyType: ObjectIdentifier) -> Int? {
    for prediction in predictions where prediction.keyType == keyType { return prediction.shape }
    return nil
  }

  /// Whether the field at `index` of a shape has that name and kind.
  @inline(__always)
  func has(_ shape: Int?, _ index: Int, _ name: String, _ kind: UInt8) -> Bool {
    guard let shape else { return false }
    return index < shapes[shape].kinds.count && shapes[shape].kinds[index] == kind
      && shapes[shape].names[index] == name
  }

  /// Finds a whole shape with the first `count` fields of another, followed by that field.
  func whole(after count: Int, of shape: Int?, _ name: String, _ kind: UInt8) -> Int? {
    shapes.indices.first { index in
      shapes[index].isWhole && has(index, count, name, kind) && isAlike(index, shape, count)
    }
  }

  /// Whether the first `count` fields of two shapes are the same.
  private func isAlike(_ one: Int, _ other: Int?, _ count: Int) -> Bool {
    guard count > 0, let other, one != other else { return true }
    return shapes[one].kinds[..<count] == shapes[other].kinds[..<count]
      && shapes[one].names[..<count] == shapes[other].names[..<count]
  }

  // MARK: - Growing

  /// Begins a shape with the first `count` fields of another; nil if there are too many shapes.
  mutating func begin(_ count: Int, of shape: Int?) -> Int? {
    guard shapes.count < Self.maximum else { return nil }
    var new = Shape()
    if count > 0, let shape {
      new.names = Array(shapes[shape].names[..<count])
      new.kinds = Array(shapes[shape].kinds[..<count])
    }
    shapes.append(new)
    return shapes.count - 1
  }

  /// Adds a field to a shape; false if the shape has a field of that name.
  mutating func add(_ name: String, _ kind: UInt8, to shape: Int) -> Bool {
    guard !shapes[shape].names.contains(name) else { return false }
    shapes[shape].names.append(name)
    shapes[shape].kinds.append(kind)
    return true
  }

  /// Returns the number of the shape of an object that has ended; nil if there are too many shapes.
  ///
  /// The object has the first `count` fields of `shape`, which `isNew` if it grew with the object.
  mutating func end(
    _ shape: Int, fields count: Int, isNew: Bool, keyType: ObjectIdentifier
  ) -> UInt8? {
    guard let index = whole(shape, count, isNew: isNew) else { return nil }
    predict(index, for: keyType)
    if shapes[index].payload == payload { return shapes[index].number }
    guard reserved + used.count < Binary.maximumShapes else { return nil }
    shapes[index].payload = payload
    shapes[index].number = UInt8(reserved + used.count)
    used.append(index)
    return shapes[index].number
  }

  /// Finds or makes the whole shape with exactly the first `count` fields of another.
  private mutating func whole(_ shape: Int, _ count: Int, isNew: Bool) -> Int? {
    if !isNew, shapes[shape].kinds.count == count { return shape }
    let known = shapes.indices.first { index in
      shapes[index].isWhole && shapes[index].kinds.count == count && isAlike(index, shape, count)
    }
    if let known { return known }
    guard let index = isNew ? shape : begin(count, of: shape) else { return nil }
    shapes[index].isWhole = true
    return index
  }

  private mutating func predict(_ shape: Int, for keyType: ObjectIdentifier) {
    for index in predictions.indices where predictions[index].keyType == keyType {
      predictions[index].shape = shape
      return
    }
    predictions.append((keyType, shape))
  }
}
