/// A value that is being decoded.
struct ValueState: ~Copyable {
  /// Where the value is within the one around it.
  enum Name {
    case root
    case key(any CodingKey)
    case index(Int)
  }

  /// A keyed container of the value's decoder, kept for later values with this decoder.
  struct Container {
    // Unsafe: `ValueState` has retained it. `ValueReader.fields` needs it to be the first property.
    /// The ``Original``, which refers to the others.
    let original: Unmanaged<AnyObject>
    /// The object to which every copy of the container refers.
    let shared: UnsafeRawPointer
    let link: Unmanaged<FieldsLink>
    let keyType: ObjectIdentifier
  }

  /// The largest number of keyed containers that are kept.
  private static let maximumContainers = 8

  // Unsafe: the payload outlives the decoder of each of its values, which owns this state: it
  // retains that of each value in `PayloadState.values`, and is retained by that of each other.
  let payload: UnsafeMutablePointer<PayloadState>
  /// The number of values around this one.
  let level: Int
  /// The decoder, which is handed out to the value's type.
  var decoder: Unmanaged<ValueDecoder>?
  /// Whether the decoder belongs to those who use it, because they kept it.
  var isLoose = false

  var place: WirePlace
  /// The nesting level: the number of containers around the value, plus 1.
  var depth: Int
  // Unsafe: the parent's decoder stays with the payload, or with this value's if that is loose.
  var parent: UnsafeMutablePointer<ValueState>?
  var name: Name

  // The fields of an object, or the entries of a map.
  var hasEntered = false
  // Unsafe: the payload's table of shapes owns them.
  var fields: UnsafePointer<Shape.Field>?
  /// The number of ``fields``; 0 for a map.
  var fieldCount = 0
  /// The field after the one that was last read, and where it begins.
  var nextField = 0
  var nextOffset = 0
  /// The offsets of the fields; empty until a field before the current position is requested.
  var offsets: [Int] = []
  var entries: MapEntries?

  // Unsafe: the first `containerCount` of `maximumContainers` are initialized.
  private var containers: UnsafeMutablePointer<Container>?
  private var containerCount = 0
  /// The index of the container that was handed out last.
  private var last = 0
  /// The containers that this value has handed out, as bits.
  private var handedOut: UInt8 = 0

  init(_ payload: UnsafeMutablePointer<PayloadState>, level: Int) {
    self.payload = payload
    self.level = level
    place = .null
    depth = 0
    name = .root
  }

  /// Prepares the state for another value.
  @inline(__always)
  mutating func begin(
    _ place: WirePlace, depth: Int, parent: UnsafeMutablePointer<ValueState>?,
    _ name: consuming Name
  ) {
    self.place = place
    self.depth = depth
    self.parent = parent
    self.name = name
    handedOut = 0
    if hasEntered { leaveFields() }
  }

  /// Keeps nothing of a value that nobody uses: its keys and entries may be large.
  fileprivate mutating func forget() {
    if hasEntered { leaveFields() }
    name = .root
  }

  private mutating func leaveFields() {
    hasEntered = false
    fieldCount = 0
    nextField = 0
    if !offsets.isEmpty { offsets = [] }
    if entries != nil { entries = nil }
  }
}

// MARK: - Containers

extension ValueState {
  /// The place of a ``Container`` for keys of a type; nil if there is none.
  ///
  /// Containers that are in use belong to this value, and equal each other.
  @inline(__always)
  mutating func container(_ keyType: ObjectIdentifier) -> UnsafeMutableRawPointer? {
    guard let containers else { return nil }
    if containers[last].keyType != keyType {
      guard let index = (0..<containerCount).first(where: { containers[$0].keyType == keyType })
      else { return nil }
      last = index
    }
    handedOut |= 1 << UInt8(truncatingIfNeeded: last)
    return UnsafeMutableRawPointer(containers + last)
  }

  /// Keeps a container that is handed out.
  mutating func keep(_ container: Container) {
    let containers = self.containers ?? .allocate(capacity: Self.maximumContainers)
    self.containers = containers
    if containerCount < Self.maximumContainers {
      last = containerCount
      containerCount += 1
    } else {
      last = (last + 1) % containerCount
      release(containers[last])
    }
    (containers + last).initialize(to: container)
    handedOut |= 1 << UInt8(truncatingIfNeeded: last)
  }

  /// Releases a container, which keeps the decoder if it is in use.
  private func release(_ container: Container) {
    if !isOnlyReference(container.shared) {
      container.link.takeUnretainedValue().owner = decoder?.takeUnretainedValue()
    }
    container.original.release()
  }

  /// Releases all containers.
  mutating func releaseContainers() {
    guard let containers else { return }
    for index in 0..<containerCount { release(containers[index]) }
    containers.deallocate()
    self.containers = nil
    containerCount = 0
  }

  /// Whether nobody but the payload uses the decoder and its containers.
  @inline(__always)
  var isFree: Bool {
    guard let decoder, isOnlyReference(decoder.toOpaque()) else { return false }
    return handedOut == 0 || areContainersFree
  }

  private var areContainersFree: Bool {
    guard let containers else { return true }
    if handedOut == 1 { return isOnlyReference(containers.pointee.shared) }
    return (0..<containerCount).allSatisfy { isOnlyReference(containers[$0].shared) }
  }
}

// MARK: - Values of a payload

extension PayloadState {
  /// The state of a value that is within `level` others, none of which is loose.
  ///
  /// It stays in its place until a later value within as many others needs one.
  @inline(__always)
  mutating func value(level: Int) -> UnsafeMutablePointer<ValueState>? {
    if level < values.count, let value = values[level] {
      // Users of the values from `usedValues` on have released them.
      if level >= usedValues || (level + 1 == usedValues && value.pointee.isFree) {
        usedValues = level + 1
        return value
      }
    }
    return nil
  }

  /// Makes the state of a value, after `value(level:)` found none.
  @inline(never)
  mutating func newValue(
    of payload: UnsafeMutablePointer<PayloadState>, level: Int
  ) -> UnsafeMutablePointer<ValueState> {
    endValues(from: level)
    usedValues = level + 1
    while values.count <= level { values.append(nil) }
    if let value = values[level] { return value }
    let state = ValueDecoder.makeState(payload, level: level)
    values[level] = state
    return state
  }

  /// Hands the values from `level` on that are in use over to those who use them.
  mutating func endValues(from level: Int) {
    guard level < usedValues else { return }
    // From the inside out, because a value that is handed over keeps the one around it.
    for index in (level..<usedValues).reversed() {
      guard let value = values[index] else { continue }
      if value.pointee.isFree {
        value.pointee.forget()
      } else {
        values[index] = nil
        Self.loosen(value, of: owner)
      }
    }
    usedValues = level
  }

  // Unsafe: the payload is valid, because its state is in use.
  private static func loosen(
    _ value: UnsafeMutablePointer<ValueState>, of payload: Unmanaged<Payload>?
  ) {
    guard let kept = value.pointee.decoder else { return }
    let decoder = kept.takeUnretainedValue()
    decoder.parent = value.pointee.parent?.pointee.decoder?.takeUnretainedValue()
    decoder.payload = payload?.takeUnretainedValue()
    value.pointee.isLoose = true
    value.pointee.releaseContainers()
    kept.release()
  }

  /// Releases the values that are kept, none of which is in use.
  mutating func releaseValues() {
    for case let value? in values {
      value.pointee.releaseContainers()
      value.pointee.decoder?.release()
    }
    values = []
    usedValues = 0
  }
}
