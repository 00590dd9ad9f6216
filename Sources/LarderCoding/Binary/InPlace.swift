/// A value that is not copied before something is asked of it.
///
/// A copy would count a reference for each of the value's fields, which takes as long as to encode
/// them.
package struct InPlace<Value>: ~Copyable {
  package let value: Value
}

extension UnsafeBufferPointer {
  /// Where the elements stand; nil if there are none.
  package var inPlace: UnsafePointer<InPlace<Element>>? {
    // Unsafe: an element as `InPlace` has it is laid out as it is.
    unsafe UnsafeRawPointer(baseAddress)?.assumingMemoryBound(to: InPlace<Element>.self)
  }
}
