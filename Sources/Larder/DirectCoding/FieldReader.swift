public import Foundation
import LarderCoding

/// Where a value of a ``DirectCoding`` type takes its fields from.
///
/// What these functions throw is for the library alone: hand it on. The type's `Codable`
/// conformance then says what is wrong.
public struct FieldReader: ~Copyable {
  var base: DirectReader

  init(_ base: consuming DirectReader) { self.base = base }

  /// Reads a value of any other type, by its `init(from:)`.
  ///
  /// - Parameter name: That of the field's coding key.
  /// - Returns: The value.
  /// - Throws: What is for the library alone.
  public mutating func read<T: Decodable>(_ name: StaticString) throws -> T {
    try base.decode(name)
  }

  /// Reads a value of any other type, by its `init(from:)`; nil if there is none.
  ///
  /// - Parameter name: That of the field's coding key.
  /// - Returns: The value, or nil.
  /// - Throws: What is for the library alone.
  public mutating func readIfPresent<T: Decodable>(_ name: StaticString) throws -> T? {
    try base.decodeIfPresent(name)
  }
}

// MARK: - Types with a kind of their own

extension FieldReader {
  /// Reads a truth value.
  public mutating func read(_ name: StaticString) throws -> Bool { try base.read(name) }

  /// Reads an integer.
  public mutating func read(_ name: StaticString) throws -> Int { try base.read(name) }

  /// Reads a number.
  public mutating func read(_ name: StaticString) throws -> Double { try base.read(name) }

  /// Reads a text.
  public mutating func read(_ name: StaticString) throws -> String { try base.read(name) }

  /// Reads bytes.
  public mutating func read(_ name: StaticString) throws -> Data { try base.read(name) }

  /// Reads a date, to the last bit.
  public mutating func read(_ name: StaticString) throws -> Date { try base.read(name) }

  /// Reads a URL.
  public mutating func read(_ name: StaticString) throws -> URL { try base.read(name) }

  /// Reads a UUID.
  public mutating func read(_ name: StaticString) throws -> UUID { try base.read(name) }

  /// Reads a truth value; nil if there is none.
  public mutating func readIfPresent(_ name: StaticString) throws -> Bool? {
    try base.readIfPresent(name)
  }

  /// Reads an integer; nil if there is none.
  public mutating func readIfPresent(_ name: StaticString) throws -> Int? {
    try base.readIfPresent(name)
  }

  /// Reads a number; nil if there is none.
  public mutating func readIfPresent(_ name: StaticString) throws -> Double? {
    try base.readIfPresent(name)
  }

  /// Reads a text; nil if there is none.
  public mutating func readIfPresent(_ name: StaticString) throws -> String? {
    try base.readIfPresent(name)
  }

  /// Reads bytes; nil if there is none.
  public mutating func readIfPresent(_ name: StaticString) throws -> Data? {
    try base.readIfPresent(name)
  }

  /// Reads a date, to the last bit; nil if there is none.
  public mutating func readIfPresent(_ name: StaticString) throws -> Date? {
    try base.readIfPresent(name)
  }

  /// Reads a URL; nil if there is none.
  public mutating func readIfPresent(_ name: StaticString) throws -> URL? {
    try base.readIfPresent(name)
  }

  /// Reads a UUID; nil if there is none.
  public mutating func readIfPresent(_ name: StaticString) throws -> UUID? {
    try base.readIfPresent(name)
  }
}
