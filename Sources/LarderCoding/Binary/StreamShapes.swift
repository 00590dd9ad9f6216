import LarderBytes

/// The shapes of objects that a stream has written, in this payload and in those before.
///
/// A shape gets a number in a payload when the first object of it ends. So what was written before
/// does not show.
struct StreamShapes {
  private struct Shape {
    var names: [String] = []
    var kinds: [UInt8] = []
    /// Whether all of its fields are known.
    var isWhole = false
    /// The payload in which it has its number.
    var payload = 0
    var number: UInt8 = 0
  }

  /// How many shapes are remembered from one payload to the next.
  private static let maximumKept = 256
  /// How many shapes one payload may begin with; most are equal in the end, or there is a limit.
  private static let maximum = 2048

  /// How many shapes the payload has that are somebody else's, and come before these.
  private let reserved: Int
  private var shapes: [Shape] = []
  /// The shapes of this payload, by their numbers.
  private var used: [Int] = []
  private var payload = 1
  /// The shape that the last object with a type of keys had.
  private var predictions: [(keyType: ObjectIdentifier, shape: Int)] = []

  init(reserved: Int) { self.reserved = reserved }

  /// How many shapes this payload has.
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

  /// Appends the table.
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

  /// The shape that an object with such keys will have if it is as the last one; else -1.
  @inline(__always)
  func predicted(for keyType: ObjectIdentifier) -> Int {
    for prediction in predictions where prediction.keyType == keyType { return prediction.shape }
    return -1
  }

  /// Whether a shape has such a field at that place.
  @inline(__always)
  func has(_ shape: Int, _ place: Int, _ name: String, _ kind: UInt8) -> Bool {
    shape >= 0 && place < shapes[shape].kinds.count && shapes[shape].kinds[place] == kind
      && shapes[shape].names[place] == name
  }

  /// A whole shape that begins with the first fields of another, and goes on with that field.
  func whole(after count: Int, of shape: Int, _ name: String, _ kind: UInt8) -> Int? {
    shapes.indices.first { index in
      shapes[index].isWhole && has(index, count, name, kind) && isAlike(index, shape, count)
    }
  }

  /// Whether the first fields of two shapes are the same.
  private func isAlike(_ one: Int, _ other: Int, _ count: Int) -> Bool {
    if count == 0 || one == other { return true }
    return shapes[one].kinds[..<count] == shapes[other].kinds[..<count]
      && shapes[one].names[..<count] == shapes[other].names[..<count]
  }

  // MARK: - Growing

  /// Begins a shape with the first fields of another; nil if there are too many.
  mutating func begin(_ count: Int, of shape: Int) -> Int? {
    guard shapes.count < Self.maximum else { return nil }
    var new = Shape()
    if count > 0 {
      new.names = Array(shapes[shape].names[..<count])
      new.kinds = Array(shapes[shape].kinds[..<count])
    }
    shapes.append(new)
    return shapes.count - 1
  }

  /// Adds a field to a shape that was begun; false if it has one of that name.
  mutating func add(_ name: String, _ kind: UInt8, to shape: Int) -> Bool {
    guard !shapes[shape].names.contains(name) else { return false }
    shapes[shape].names.append(name)
    shapes[shape].kinds.append(kind)
    return true
  }

  /// The shape of an object that has ended with the first fields of `shape`, which `isNew` if it
  /// grew with the object; nil if there are too many.
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

  /// The whole shape that has the first fields of another and no more.
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
