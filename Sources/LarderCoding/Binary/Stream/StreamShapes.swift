import LarderBytes

/// The shapes of the objects that a stream has written, in this and in earlier payloads.
///
/// A shape gets its number in a payload when the first object with it ends. A payload's bytes
/// therefore do not depend on the payloads written before it.
struct StreamShapes: ~Copyable {
  struct Field {
    let name: String
    let kind: UInt8
  }

  private struct Shape {
    // Unsafe: allocated by `begin` and `add`, and freed by `reset` and `deinit`.
    /// The fields, followed by ``StreamShapes/end``.
    var fields: UnsafeMutablePointer<Field>
    var count: Int
    var capacity: Int
    /// Whether an object with exactly these fields has ended.
    var isWhole = false
    /// The shape in a table of shapes; empty until the shape is whole.
    var entry: [UInt8] = []
    /// The payload for which ``number`` is valid.
    var payload = 0
    var number: UInt8 = 0
  }

  /// The shape of the last object with a type of keys.
  struct Prediction {
    let keyType: ObjectIdentifier
    var shape: Int?
  }

  /// The largest number of shapes kept from one payload to the next.
  private static let maximumKept = 256
  /// The largest number of shapes that can be begun; many of them turn out equal to a known one.
  private static let maximum = 2048
  /// The largest number of predictions kept from one payload to the next.
  private static let maximumPredictions = 32

  /// The end of a shape's fields, which equals no field: no field has the kind null.
  private static var end: Field { Field(name: "", kind: Kind.null.rawValue) }
  /// The fields of no shape.
  // Unsafe: allocated with the shapes, never changed, and freed in `deinit`.
  let nothing: UnsafePointer<Field>

  /// The number of the payload's shapes that precede these and belong to a ``DirectWriter``.
  private let reserved: Int
  private var shapes: [Shape] = []
  /// The shapes of this payload, by their numbers; below zero for those in ``direct``.
  private var used: [Int] = []
  // Unsafe: the shapes live as long as the program.
  /// The shapes of this payload whose objects a ``DirectWriter`` writes, with their numbers.
  private var direct: [(shape: UnsafePointer<WrittenShape>, number: UInt8)] = []
  private var payload = 1
  private var predictions: [Prediction] = []
  private var lastPrediction = 0

  init(reserved: Int) {
    self.reserved = reserved
    let end = UnsafeMutablePointer<Field>.allocate(capacity: 1)
    end.initialize(to: Self.end)
    nothing = UnsafePointer(end)
  }

  deinit {
    for shape in shapes { Self.free(shape) }
    UnsafeMutablePointer(mutating: nothing).deinitialize(count: 1)
    nothing.deallocate()
  }

  private static func free(_ shape: Shape) {
    shape.fields.deinitialize(count: shape.count + 1)
    shape.fields.deallocate()
  }

  /// The number of shapes used in this payload.
  var count: Int { used.count }

  /// Begins another payload.
  mutating func reset() {
    payload += 1
    used.removeAll(keepingCapacity: true)
    // Most payloads have none, and emptying an empty array takes 50 instructions.
    if !direct.isEmpty { direct.removeAll(keepingCapacity: true) }
    if shapes.count > Self.maximumKept || predictions.count > Self.maximumPredictions {
      for shape in shapes { Self.free(shape) }
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
      if index < 0 {
        bytes.append(UnsafeRawBufferPointer(direct[-1 - index].shape.pointee.entry))
      } else {
        bytes.append(shapes[index].entry)
      }
    }
  }

  // MARK: - Shapes of a direct writer

  /// Returns the number of a shape in this payload; nil if there are too many shapes.
  mutating func number(of shape: UnsafePointer<WrittenShape>) -> UInt8? {
    for known in direct where known.shape == shape { return known.number }
    guard reserved + used.count < Binary.maximumShapes else { return nil }
    let number = UInt8(reserved + used.count)
    used.append(-1 - direct.count)
    direct.append((shape, number))
    return number
  }

  // MARK: - Finding

  /// The index of the prediction for a type of keys.
  @inline(__always)
  mutating func prediction(for keyType: ObjectIdentifier) -> Int {
    if lastPrediction < predictions.count, predictions[lastPrediction].keyType == keyType {
      return lastPrediction
    }
    return otherPrediction(for: keyType)
  }

  @inline(never)
  private mutating func otherPrediction(for keyType: ObjectIdentifier) -> Int {
    lastPrediction = predictions.firstIndex { $0.keyType == keyType } ?? predictions.count
    if lastPrediction == predictions.count {
      predictions.append(Prediction(keyType: keyType, shape: nil))
    }
    return lastPrediction
  }

  /// The shape of the last object with that prediction; nil if there was none.
  @inline(__always)
  func predicted(_ prediction: Int) -> Int? { predictions[prediction].shape }

  /// The fields of a shape, from the one at `index` on.
  @inline(__always)
  func fields(of shape: Int, from index: Int = 0) -> UnsafePointer<Field> {
    UnsafePointer(shapes[shape].fields + index)
  }

  /// Whether the field at `index` of a shape has that name and kind.
  private func has(_ shape: Int, _ index: Int, _ name: String, _ kind: UInt8) -> Bool {
    guard index < shapes[shape].count else { return false }
    let field = shapes[shape].fields + index
    return field.pointee.kind == kind && field.pointee.name == name
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
    guard shapes[one].count >= count else { return false }
    let (left, right) = (shapes[one].fields, shapes[other].fields)
    return (0..<count).allSatisfy { index in
      left[index].kind == right[index].kind && left[index].name == right[index].name
    }
  }

  // MARK: - Growing

  /// Begins a shape with the first `count` fields of another; nil if there are too many shapes.
  mutating func begin(_ count: Int, of shape: Int?) -> Int? {
    guard shapes.count < Self.maximum else { return nil }
    let capacity = count + 8
    let fields = UnsafeMutablePointer<Field>.allocate(capacity: capacity)
    if let shape { fields.initialize(from: shapes[shape].fields, count: count) }
    (fields + count).initialize(to: Self.end)
    shapes.append(Shape(fields: fields, count: count, capacity: capacity))
    return shapes.count - 1
  }

  /// Adds a field to a shape; false if the shape has a field of that name.
  mutating func add(_ name: String, _ kind: UInt8, to shape: Int) -> Bool {
    var new = shapes[shape]
    for index in 0..<new.count where new.fields[index].name == name { return false }
    if new.count + 1 == new.capacity {
      new.capacity *= 2
      let fields = UnsafeMutablePointer<Field>.allocate(capacity: new.capacity)
      fields.moveInitialize(from: new.fields, count: new.count + 1)
      new.fields.deallocate()
      new.fields = fields
    }
    new.fields[new.count] = Field(name: name, kind: kind)
    new.count += 1
    (new.fields + new.count).initialize(to: Self.end)
    shapes[shape] = new
    return true
  }

  /// Returns the number of a shape that has all fields of an object; nil if the shape has none in
  /// this payload yet.
  @inline(__always)
  func number(of shape: Int) -> UInt8? {
    shapes[shape].payload == payload ? shapes[shape].number : nil
  }

  /// Returns the number of the shape of an object that has ended; nil if there are too many shapes.
  ///
  /// The object has the first `count` fields of `shape`, which `isNew` if it grew with the object.
  mutating func end(_ shape: Int, fields count: Int, isNew: Bool, prediction: Int) -> UInt8? {
    guard let index = whole(shape, count, isNew: isNew) else { return nil }
    predictions[prediction].shape = index
    if shapes[index].payload == payload { return shapes[index].number }
    guard reserved + used.count < Binary.maximumShapes else { return nil }
    shapes[index].payload = payload
    shapes[index].number = UInt8(reserved + used.count)
    used.append(index)
    return shapes[index].number
  }

  /// Finds or makes the whole shape with exactly the first `count` fields of another.
  private mutating func whole(_ shape: Int, _ count: Int, isNew: Bool) -> Int? {
    if !isNew, shapes[shape].count == count { return shape }
    let known = shapes.indices.first { index in
      shapes[index].isWhole && shapes[index].count == count && isAlike(index, shape, count)
    }
    if let known { return known }
    guard let index = isNew ? shape : begin(count, of: shape) else { return nil }
    shapes[index].isWhole = true
    shapes[index].entry = entry(of: index)
    return index
  }

  private func entry(of shape: Int) -> [UInt8] {
    var entry = ByteBuffer()
    entry.append(varint: UInt64(shapes[shape].count))
    for index in 0..<shapes[shape].count {
      entry.append(shapes[shape].fields[index].kind)
      entry.append(text: shapes[shape].fields[index].name)
    }
    return Array(entry)
  }
}
