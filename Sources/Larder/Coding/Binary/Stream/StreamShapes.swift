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
    // Unsafe: allocated by `begin` and `add`, and freed by `deallocate`.
    /// The fields, followed by ``StreamShapes/end``.
    var fields: UnsafeMutablePointer<Field>
    var count: Int
    var capacity: Int
    // Unsafe: allocated by `makeWhole`, and freed by `deallocate`.
    /// The shape's entry in a table of shapes; nil until the shape is whole.
    var entry: UnsafeMutableRawBufferPointer?
    /// The payload for which ``number`` is valid.
    var payload = 0
    var number: UInt8 = 0

    /// Whether an object with exactly these fields has ended.
    var isWhole: Bool { entry != nil }

    /// Notes that an object with exactly these fields has ended.
    mutating func makeWhole() {
      var bytes = ByteBuffer()
      bytes.append(shapeOf: (0..<count).map { (fields[$0].name, fields[$0].kind) })
      let entry = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
      bytes.withBytes { entry.copyMemory(from: $0) }
      self.entry = entry
    }

    func deallocate() {
      fields.deinitialize(count: count + 1)
      fields.deallocate()
      entry?.deallocate()
    }
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
  private static var end: Field { Field(name: "", kind: WireKind.null.rawValue) }
  /// The fields of no shape.
  // Unsafe: allocated with the shapes, never changed, and freed in `deinit`.
  let nothing: UnsafePointer<Field>

  /// The number of the payload's shapes that precede these and belong to a ``DirectWriter``.
  private let reserved: Int
  // Unsafe: allocated by `begin`, and freed by `reset` and `deinit`. In an array of shapes, each
  // change of one would check whether the array is shared.
  private var shapes: [UnsafeMutablePointer<Shape>] = []
  /// The shapes of this payload, by their numbers; below zero for those in ``direct``.
  ///
  /// The first ``count`` are valid: emptying the array takes longer.
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
    freeShapes()
    UnsafeMutablePointer(mutating: nothing).deinitialize(count: 1)
    nothing.deallocate()
  }

  private func freeShapes() {
    for shape in shapes {
      shape.pointee.deallocate()
      shape.deallocate()
    }
  }

  /// The number of shapes used in this payload.
  private(set) var count = 0

  /// Adds a shape to those of this payload, and returns its number; nil if there are too many.
  private mutating func use(_ index: Int) -> UInt8? {
    guard reserved + count < Binary.maximumShapes else { return nil }
    if count < used.count { used[count] = index } else { used.append(index) }
    count += 1
    return UInt8(reserved + count - 1)
  }

  /// Begins another payload.
  mutating func reset() {
    payload += 1
    count = 0
    // Most payloads have none, and emptying an empty array takes 50 instructions.
    if !direct.isEmpty { direct.removeAll(keepingCapacity: true) }
    if shapes.count > Self.maximumKept || predictions.count > Self.maximumPredictions {
      freeShapes()
      shapes = []
      predictions = []
    }
  }

  /// Appends the table of shapes.
  func append(to bytes: inout ByteBuffer) {
    bytes.append(UInt8(count))
    appendEntries(to: &bytes)
  }

  /// Appends the table without the number of shapes.
  func appendEntries(to bytes: inout ByteBuffer) {
    for number in 0..<count {
      let index = used[number]
      if index < 0 {
        bytes.append(UnsafeRawBufferPointer(direct[-1 - index].shape.pointee.entry))
      } else if let entry = shapes[index].pointee.entry {
        bytes.append(UnsafeRawBufferPointer(entry))
      }
    }
  }

  // MARK: - Shapes of a direct writer

  /// Returns the number of a shape in this payload; nil if there are too many shapes.
  mutating func number(of shape: UnsafePointer<WrittenShape>) -> UInt8? {
    for known in direct where known.shape == shape { return known.number }
    guard let number = use(-1 - direct.count) else { return nil }
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
    UnsafePointer(shapes[shape].pointee.fields + index)
  }

  /// Whether the field at `index` of a shape has that name and kind.
  private func has(_ shape: Int, _ index: Int, _ name: String, _ kind: UInt8) -> Bool {
    guard index < shapes[shape].pointee.count else { return false }
    let field = shapes[shape].pointee.fields + index
    return field.pointee.kind == kind && field.pointee.name == name
  }

  /// Finds a whole shape with the first `count` fields of another, followed by that field.
  func whole(after count: Int, of shape: Int?, _ name: String, _ kind: UInt8) -> Int? {
    shapes.indices.first { index in
      shapes[index].pointee.isWhole && has(index, count, name, kind)
        && isAlike(index, shape, count)
    }
  }

  /// Whether the first `count` fields of two shapes are the same.
  private func isAlike(_ one: Int, _ other: Int?, _ count: Int) -> Bool {
    guard count > 0, let other, one != other else { return true }
    guard shapes[one].pointee.count >= count else { return false }
    let (left, right) = (shapes[one].pointee.fields, shapes[other].pointee.fields)
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
    if let shape { fields.initialize(from: shapes[shape].pointee.fields, count: count) }
    (fields + count).initialize(to: Self.end)
    let new = UnsafeMutablePointer<Shape>.allocate(capacity: 1)
    new.initialize(to: Shape(fields: fields, count: count, capacity: capacity))
    shapes.append(new)
    return shapes.count - 1
  }

  /// Adds a field to a shape; false if the shape has a field of that name.
  mutating func add(_ name: String, _ kind: UInt8, to shape: Int) -> Bool {
    var new = shapes[shape].pointee
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
    shapes[shape].pointee = new
    return true
  }

  /// Returns the number of a shape that has all fields of an object; nil if the shape has none in
  /// this payload yet.
  @inline(__always)
  func number(of shape: Int) -> UInt8? {
    let shape = shapes[shape]
    return shape.pointee.payload == payload ? shape.pointee.number : nil
  }

  /// Returns the number of the shape of an object that has ended; nil if there are too many shapes.
  ///
  /// The object has the first `count` fields of `shape`, which `isNew` if it grew with the object.
  mutating func end(_ shape: Int, fields count: Int, isNew: Bool, prediction: Int) -> UInt8? {
    guard let index = whole(shape, count, isNew: isNew) else { return nil }
    if predictions[prediction].shape != index { predictions[prediction].shape = index }
    if let number = number(of: index) { return number }
    guard let number = use(index) else { return nil }
    shapes[index].pointee.payload = payload
    shapes[index].pointee.number = number
    return number
  }

  /// Finds or makes the whole shape with exactly the first `count` fields of another.
  private mutating func whole(_ shape: Int, _ count: Int, isNew: Bool) -> Int? {
    if !isNew, shapes[shape].pointee.count == count { return shape }
    let known = shapes.indices.first { index in
      shapes[index].pointee.isWhole && shapes[index].pointee.count == count
        && isAlike(index, shape, count)
    }
    if let known { return known }
    guard let index = isNew ? shape : begin(count, of: shape) else { return nil }
    shapes[index].pointee.makeWhole()
    return index
  }
}
