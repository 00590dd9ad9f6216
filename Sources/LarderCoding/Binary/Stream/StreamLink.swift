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

/// A value in memory of its own, of which copies are handed out.
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
