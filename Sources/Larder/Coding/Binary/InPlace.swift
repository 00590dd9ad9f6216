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
