public import Foundation

/// Writes the fields of a ``DirectCoding`` or ``DirectEnum`` value.
public struct FieldWriter: ~Copyable {
  var base: DirectWriter

  init(_ base: consuming DirectWriter) { self.base = base }

  /// The fields that `write` writes.
  static func fields(writtenBy write: (inout FieldWriter) -> Void) -> [WrittenField] {
    var fields: [WrittenField] = []
    withUnsafeMutablePointer(to: &fields) { fields in
      var writer = FieldWriter(DirectWriter(learning: fields))
      write(&writer)
    }
    return fields
  }

  /// Moves the payload into `buffer`.
  ///
  /// Returns false, and appends nothing, if the value must be encoded through `Codable`.
  @inline(__always)
  consuming func finish(into buffer: inout ByteBuffer) -> Bool {
    let isWritten = base.finish(into: &buffer)
    base.end()
    return isWritten
  }

  /// Returns the bytes to the stream that the value is within; false, without the value, if it must
  /// be encoded through `Codable`.
  consuming func finish(within stream: StreamWriter) -> Bool { base.finish(within: stream) }

  /// Begins a case of a ``DirectEnum``; the fields that are written next are the case's.
  ///
  /// - Parameter name: The name of the case's coding key.
  public mutating func writeCase(_ name: StaticString) { base.beginCase(name) }

  /// Writes a value of any other type.
  ///
  /// ``DirectCoding`` and ``DirectEnum`` types are written directly, and so are optionals, arrays,
  /// sets, and dictionaries with string keys that hold them; other types are written with
  /// `encode(to:)`.
  ///
  /// - Parameters:
  ///   - value: The field's value. If it cannot be encoded, the save throws its error.
  ///   - name: The name of the field's coding key.
  public mutating func write<T: Encodable>(_ value: T, as name: StaticString) {
    guard let part = DirectParts.part(for: T.self) else {
      return base.encode(value, as: name, parts: DirectParts.self)
    }
    if base.beginPart(name) { withUnsafePointer(to: value) { part.write(at: $0, to: &self) } }
  }

  /// Writes an optional value of any other type.
  ///
  /// - Parameters:
  ///   - value: The field's value. If it cannot be encoded, the save throws its error.
  ///   - name: The name of the field's coding key.
  public mutating func writeIfPresent<T: Encodable>(_ value: T?, as name: StaticString) {
    guard let part = DirectParts.part(for: T.self) else {
      return base.encodeIfPresent(value, as: name, parts: DirectParts.self)
    }
    guard base.beginPart(name, isPresent: value != nil) else { return }
    // A value that is present is at the start of its optional.
    withUnsafePointer(to: value) { part.write(at: $0, to: &self) }
  }
}

// MARK: - Types that the format stores natively

extension FieldWriter {
  /// Writes a Boolean.
  public mutating func write(_ value: Bool, as name: StaticString) { base.write(value, as: name) }

  /// Writes an integer.
  public mutating func write(_ value: Int, as name: StaticString) { base.write(value, as: name) }

  /// Writes a floating-point number.
  public mutating func write(_ value: Double, as name: StaticString) { base.write(value, as: name) }

  /// Writes a string.
  public mutating func write(_ value: String, as name: StaticString) { base.write(value, as: name) }

  /// Writes bytes.
  public mutating func write(_ value: Data, as name: StaticString) { base.write(value, as: name) }

  /// Writes a date, to the last bit.
  public mutating func write(_ value: Date, as name: StaticString) { base.write(value, as: name) }

  /// Writes a URL.
  public mutating func write(_ value: URL, as name: StaticString) { base.write(value, as: name) }

  /// Writes a UUID.
  public mutating func write(_ value: UUID, as name: StaticString) { base.write(value, as: name) }

  /// Writes an optional Boolean.
  public mutating func writeIfPresent(_ value: Bool?, as name: StaticString) {
    base.writeIfPresent(value, as: name)
  }

  /// Writes an optional integer.
  public mutating func writeIfPresent(_ value: Int?, as name: StaticString) {
    base.writeIfPresent(value, as: name)
  }

  /// Writes an optional floating-point number.
  public mutating func writeIfPresent(_ value: Double?, as name: StaticString) {
    base.writeIfPresent(value, as: name)
  }

  /// Writes an optional string.
  public mutating func writeIfPresent(_ value: String?, as name: StaticString) {
    base.writeIfPresent(value, as: name)
  }

  /// Writes optional bytes.
  public mutating func writeIfPresent(_ value: Data?, as name: StaticString) {
    base.writeIfPresent(value, as: name)
  }

  /// Writes an optional date, to the last bit.
  public mutating func writeIfPresent(_ value: Date?, as name: StaticString) {
    base.writeIfPresent(value, as: name)
  }

  /// Writes an optional URL.
  public mutating func writeIfPresent(_ value: URL?, as name: StaticString) {
    base.writeIfPresent(value, as: name)
  }

  /// Writes an optional UUID.
  public mutating func writeIfPresent(_ value: UUID?, as name: StaticString) {
    base.writeIfPresent(value, as: name)
  }
}
