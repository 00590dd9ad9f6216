/// The encoders and containers that a stream hands out, kept for later values and payloads.
///
/// One is handed out again when the type that received it has released it. Making a new keyed
/// container takes three allocations.
struct StreamLinks: ~Copyable {
  /// An encoder or a container, with its link.
  private struct Kept {
    // Unsafe: `init` retains `owner`, which refers to the others; `StreamLinks` releases it.
    // `container(of:keyType:)` needs it to be the first property.
    let owner: Unmanaged<AnyObject>
    /// The encoder or the container in memory, unless `owner` is its link.
    let place: UnsafeRawPointer
    /// The object to which every copy of the encoder or the container refers.
    let shared: UnsafeRawPointer
    let link: Unmanaged<StreamLink>
    /// The type of the keys of a keyed container.
    let keyType: ObjectIdentifier

    /// Keeps an encoder, or a keyed container if there is a type of keys.
    init<Value>(
      _ original: Original<Value>, _ link: StreamLink, keyType: ObjectIdentifier? = nil
    ) {
      owner = .passRetained(original)
      place = UnsafeRawPointer(original.place)
      self.link = .passUnretained(link)
      self.keyType = keyType ?? ObjectIdentifier(Never.self)
      // Unsafe: a container is a reference to one object, as `keepsContainers` says.
      shared =
        keyType == nil
        ? UnsafeRawPointer(self.link.toOpaque())
        : unsafe place.load(as: UnsafeRawPointer.self)
    }

    /// Keeps a link to which the copies of a container refer.
    init(_ link: StreamLink) {
      owner = .passRetained(link)
      self.link = .passUnretained(link)
      shared = UnsafeRawPointer(self.link.toOpaque())
      place = shared
      keyType = ObjectIdentifier(Never.self)
    }

    /// Whether only the stream uses the encoder or the container.
    var isFree: Bool { isOnlyReference(shared) }

    /// Sets the target of the link.
    func point(at target: StreamLink.Target) { link.takeUnretainedValue().target = target }

    func cutIfUsed() {
      guard !isFree else { return }
      let link = link.takeUnretainedValue()
      // What was kept since an earlier payload may be in use on another thread.
      if link.target != nil { link.target = nil }
    }
  }

  /// The containers of the frames at one level.
  private struct Level {
    // Unsafe: the first `count` of `maximumContainers` are initialized; freed in `deinit`.
    var containers = UnsafeMutablePointer<Kept>.allocate(capacity: maximumContainers)
    var count = 0
    /// The index of the container that was handed out last.
    var last = 0
    var link: Kept?
  }

  /// The largest number of keyed containers that are kept for one level.
  private static let maximumContainers = 8

  /// Whether keyed containers are kept.
  private let keepsContainers: Bool
  private var levels: [Level] = []
  /// The encoders, by nesting depth.
  private var encoders: [Kept] = []
  /// Encoders and containers that are kept only until the end of the payload.
  private var loose: [Kept] = []
  private var maximumLoose = 64
  // The numbers of levels and encoders that this payload has used.
  private var usedLevels = 0
  private var usedEncoders = 0

  init(keepsContainers: Bool) { self.keepsContainers = keepsContainers }

  deinit {
    for level in levels {
      for index in 0..<level.count { level.containers[index].owner.release() }
      level.containers.deallocate()
      level.link?.owner.release()
    }
    for encoder in encoders { encoder.owner.release() }
  }
}

// MARK: - Encoders

extension StreamLinks {
  /// The encoder of a value that is within `nesting` other values.
  ///
  /// It stays in its place until a later value with the same nesting needs one.
  @inline(__always)
  mutating func encoder(
    of value: StreamLink.Target, nesting: Int
  ) -> UnsafePointer<InPlace<any Encoder>> {
    if nesting >= encoders.count || !encoders[nesting].isFree { makeEncoder(nesting) }
    usedEncoders = max(usedEncoders, nesting + 1)
    encoders[nesting].point(at: value)
    return encoders[nesting].place.assumingMemoryBound(to: (any Encoder).self).inPlace
  }

  @inline(never)
  private mutating func makeEncoder(_ nesting: Int) {
    let link = StreamLink()
    let kept = Kept(Original<any Encoder>(StreamEncoder(link: link)), link)
    if nesting == encoders.count { return encoders.append(kept) }
    loosen(encoders[nesting])
    encoders[nesting] = kept
  }
}

// MARK: - Containers

extension StreamLinks {
  /// The place of the ``Original`` of a free keyed container, for a frame; nil if there is none.
  @inline(__always)
  mutating func container(
    of frame: StreamLink.Target, keyType: ObjectIdentifier
  ) -> UnsafeMutableRawPointer? {
    if frame.level < levels.count, levels[frame.level].count > 0 {
      usedLevels = max(usedLevels, frame.level + 1)
      let kept = levels[frame.level].containers + levels[frame.level].last
      if kept.pointee.keyType == keyType, kept.pointee.isFree {
        kept.pointee.point(at: frame)
        return UnsafeMutableRawPointer(kept)
      }
    }
    return otherContainer(of: frame, keyType: keyType)
  }

  @inline(never)
  private mutating func otherContainer(
    of frame: StreamLink.Target, keyType: ObjectIdentifier
  ) -> UnsafeMutableRawPointer? {
    use(frame.level)
    let containers = levels[frame.level].containers
    for index in 0..<levels[frame.level].count
    where containers[index].keyType == keyType && containers[index].isFree {
      levels[frame.level].last = index
      containers[index].point(at: frame)
      return UnsafeMutableRawPointer(containers + index)
    }
    return nil
  }

  /// Keeps a new keyed container of a frame, with its link.
  mutating func add<Container>(
    _ container: Container, _ link: StreamLink, of frame: StreamLink.Target,
    keyType: ObjectIdentifier
  ) {
    link.target = frame
    guard keepsContainers else { return loosen(Kept(link)) }
    let kept = Kept(Original(container), link, keyType: keyType)
    let (containers, count) = (levels[frame.level].containers, levels[frame.level].count)
    if count < Self.maximumContainers {
      (containers + count).initialize(to: kept)
      levels[frame.level].last = count
      levels[frame.level].count += 1
    } else {
      let next = (levels[frame.level].last + 1) % count
      loosen(containers[next])
      containers[next] = kept
      levels[frame.level].last = next
    }
  }

  /// The link of an unkeyed container or a super encoder, for a frame.
  mutating func link(of frame: StreamLink.Target) -> StreamLink {
    use(frame.level)
    if let kept = levels[frame.level].link, !kept.isFree {
      loosen(kept)
      levels[frame.level].link = nil
    }
    let kept = levels[frame.level].link ?? Kept(StreamLink())
    levels[frame.level].link = kept
    kept.point(at: frame)
    return kept.link.takeUnretainedValue()
  }

  private mutating func use(_ level: Int) {
    while levels.count <= level { levels.append(Level()) }
    usedLevels = max(usedLevels, level + 1)
  }
}

// MARK: - Ending

extension StreamLinks {
  /// Keeps an encoder or a container no longer than until the end of the payload.
  private mutating func loosen(_ kept: Kept) {
    if loose.count == maximumLoose {
      let used = loose.filter { !$0.isFree }
      for kept in loose where kept.isFree { kept.owner.release() }
      loose = used
      maximumLoose = max(64, 2 * loose.count)
    }
    loose.append(kept)
  }

  /// Cuts the links of all encoders and containers that are still in use.
  mutating func endPayload() {
    for index in 0..<usedEncoders { encoders[index].cutIfUsed() }
    for index in 0..<usedLevels {
      levels[index].link?.cutIfUsed()
      for container in 0..<levels[index].count {
        levels[index].containers[container].cutIfUsed()
      }
    }
    (usedEncoders, usedLevels) = (0, 0)
    if !loose.isEmpty { endLoose() }
  }

  private mutating func endLoose() {
    for kept in loose {
      kept.cutIfUsed()
      kept.owner.release()
    }
    loose = []
    maximumLoose = 64
  }
}

/// What an encoder or a container sees of its stream.
///
/// At the end of a payload, the stream cuts the links of encoders and containers that are still in
/// use. They refuse everything from then on.
final class StreamLink {
  /// A value or a frame of a stream.
  struct Target {
    let writer: StreamWriter
    /// The number of the value or the frame.
    let id: Int
    /// The index of the frame, which a super encoder has, too; 0 for a value.
    let level: Int
  }

  /// Nil while the link is cut.
  @exclusivity(unchecked) var target: Target?
}

/// Keeps a value, and hands out copies of it.
///
/// It is a class so that ``copy()`` finds the type of the value in `self`: generic code that names
/// `KeyedEncodingContainer` looks its type up with each call, which takes 300 instructions.
final class Original<Value> {
  // Unsafe: allocated in `init`, and freed in `deinit`.
  let place: UnsafeMutablePointer<Value>

  init(_ value: Value) {
    place = .allocate(capacity: 1)
    place.initialize(to: value)
  }

  deinit {
    place.deinitialize(count: 1)
    place.deallocate()
  }

  @inline(never)
  func copy() -> Value { place.pointee }
}

extension Original {
  /// Whether the value is nothing but a reference to an object, which only its copies share.
  ///
  /// The layout of `KeyedEncodingContainer` belongs to the standard library, so it is checked.
  var isOneReference: Bool {
    guard MemoryLayout<Value>.size == MemoryLayout<UnsafeRawPointer>.size, let shared = reference
    else { return false }
    let isFree = isOnlyReference(shared)
    let isUsed = withExtendedLifetime(copy()) { !isOnlyReference(shared) }
    return isFree && isUsed && isOnlyReference(shared)
  }

  /// The first object that the value refers to, if the value begins with that reference.
  private var reference: UnsafeRawPointer? {
    guard let child = Mirror(reflecting: place.pointee).children.first?.value,
      type(of: child) is AnyClass
    else { return nil }
    // Unsafe: the address is only compared; the value is as large as a reference.
    let object = UnsafeRawPointer(Unmanaged.passUnretained(child as AnyObject).toOpaque())
    return unsafe UnsafeRawPointer(place).load(as: UnsafeRawPointer?.self) == object ? object : nil
  }
}

/// Whether there is only one reference to an object.
func isOnlyReference(_ object: UnsafeRawPointer) -> Bool {
  var object = object
  return withUnsafeMutablePointer(to: &object) { word in
    // Unsafe: a reference is the address of its object. Objects of all classes count references
    // in the same place, and nothing else of the object is used. A reference to `AnyObject` would
    // be retained for the call in debug builds.
    unsafe word.withMemoryRebound(to: StreamLink.self, capacity: 1) { reference in
      isKnownUniquelyReferenced(&reference.pointee)
    }
  }
}

/// A value that is used without being copied.
///
/// A copy would retain a reference for each of the value's fields, which takes as long as encoding
/// them.
package struct InPlace<Value>: ~Copyable {
  package let value: Value
}

extension UnsafeBufferPointer {
  /// The elements as ``InPlace`` values; nil if the buffer has no memory.
  package var inPlace: UnsafePointer<InPlace<Element>>? {
    // Unsafe: `InPlace` has the layout of its only property.
    unsafe UnsafeRawPointer(baseAddress)?.assumingMemoryBound(to: InPlace<Element>.self)
  }
}

extension UnsafePointer {
  /// The value as an ``InPlace`` value.
  package var inPlace: UnsafePointer<InPlace<Pointee>> {
    // Unsafe: `InPlace` has the layout of its only property.
    unsafe UnsafeRawPointer(self).assumingMemoryBound(to: InPlace<Pointee>.self)
  }
}
