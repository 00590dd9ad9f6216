public import Foundation
import LarderBytes
import LarderCoding

/// Where a value of a ``DirectCoding`` type writes its fields.
public struct FieldWriter: ~Copyable {
  var base: DirectWriter

  init(_ base: consuming DirectWriter) { self.base = base }

  /// Gives the buffer back, with the payload; false, and as it was, if there is none.
  consuming func finish(into buffer: inout ByteBuffer) -> Bool { base.finish(into: &buffer) }

  /// Gives the buffer back as it was, and what the type has shown of its shape.
  consuming func learn(into buffer: inout ByteBuffer) -> WrittenShape? {
    base.learn(into: &buffer)
  }

  /// Writes a value of any other type, by its `encode(to:)`.
  ///
  /// - Parameters:
  ///   - value: The field's value. What its encoding throws, saving the whole value throws.
  ///   - name: That of the field's coding key.
  public mutating func write(_ value: some Encodable, as name: StaticString) {
    base.encode(value, as: name)
  }

  /// Writes a value of any other type, by its `encode(to:)`, or that there is none.
  ///
  /// - Parameters:
  ///   - value: The field's value. What its encoding throws, saving the whole value throws.
  ///   - name: That of the field's coding key.
  public mutating func writeIfPresent<T: Encodable>(_ value: T?, as name: StaticString) {
    base.encodeIfPresent(value, as: name)
  }
}

// MARK: - Types with a kind of their own

extension FieldWriter {
  /// Writes a truth value.
  public mutating func write(_ value: Bool, as name: StaticString) { base.write(value, as: name) }

  /// Writes an integer.
  public mutating func write(_ value: Int, as name: StaticString) { base.write(value, as: name) }

  /// Writes a number.
  public mutating func write(_ value: Double, as name: StaticString) { base.write(value, as: name) }

  /// Writes a text.
  public mutating func write(_ value: String, as name: StaticString) { base.write(value, as: name) }

  /// Writes bytes.
  public mutating func write(_ value: Data, as name: StaticString) { base.write(value, as: name) }

  /// Writes a date, to the last bit.
  public mutating func write(_ value: Date, as name: StaticString) { base.write(value, as: name) }

  /// Writes a URL.
  public mutating func write(_ value: URL, as name: StaticString) { base.write(value, as: name) }

  /// Writes a UUID.
  public mutating func write(_ value: UUID, as name: StaticString) { base.write(value, as: name) }

  /// Writes a truth value, or that there is none.
  public mutating func writeIfPresent(_ value: Bool?, as name: StaticString) {
    base.writeIfPresent(value, as: name)
  }

  /// Writes an integer, or that there is none.
  public mutating func writeIfPresent(_ value: Int?, as name: StaticString) {
    base.writeIfPresent(value, as: name)
  }

  /// Writes a number, or that there is none.
  public mutating func writeIfPresent(_ value: Double?, as name: StaticString) {
    base.writeIfPresent(value, as: name)
  }

  /// Writes a text, or that there is none.
  public mutating func writeIfPresent(_ value: String?, as name: StaticString) {
    base.writeIfPresent(value, as: name)
  }

  /// Writes bytes, or that there is none.
  public mutating func writeIfPresent(_ value: Data?, as name: StaticString) {
    base.writeIfPresent(value, as: name)
  }

  /// Writes a date, to the last bit, or that there is none.
  public mutating func writeIfPresent(_ value: Date?, as name: StaticString) {
    base.writeIfPresent(value, as: name)
  }

  /// Writes a URL, or that there is none.
  public mutating func writeIfPresent(_ value: URL?, as name: StaticString) {
    base.writeIfPresent(value, as: name)
  }

  /// Writes a UUID, or that there is none.
  public mutating func writeIfPresent(_ value: UUID?, as name: StaticString) {
    base.writeIfPresent(value, as: name)
  }
}
