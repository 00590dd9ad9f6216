public import Foundation

/// Reads the fields of a ``DirectCoding`` or ``DirectEnum`` value.
///
/// The errors these methods throw are internal: let them propagate. The store then decodes the
/// value through its `Codable` conformance, which reports what is wrong.
public struct FieldReader: ~Copyable {
  var base: DirectReader

  init(
    _ payload: UnsafeRawBufferPointer, _ start: DirectReader.Start,
    newest: UnsafePointer<ReadingPlan>?
  ) {
    base = DirectReader(payload, start, newest: newest)
  }

  init(within payload: Payload, depth: Int) {
    base = DirectReader(within: payload, depth: depth)
  }

  /// Reads a value of any other type.
  ///
  /// ``DirectCoding`` and ``DirectEnum`` types are read directly, and so are optionals, arrays,
  /// sets, and dictionaries with string keys that hold them; other types are read with
  /// `init(from:)`.
  ///
  /// - Parameter name: The name of the field's coding key.
  /// - Returns: The value.
  /// - Throws: An internal error; let it propagate.
  public mutating func read<T: Decodable>(_ name: StaticString) throws -> T {
    guard let part = DirectParts.part(for: T.self) else {
      return try base.decode(name, parts: DirectParts.self)
    }
    return try part.read(try base.locatePart(name), from: &self)
  }

  /// Reads an optional value of any other type; nil if the field is missing or nil.
  ///
  /// - Parameter name: The name of the field's coding key.
  /// - Returns: The value, or nil.
  /// - Throws: An internal error; let it propagate.
  public mutating func readIfPresent<T: Decodable>(_ name: StaticString) throws -> T? {
    guard let part = DirectParts.part(for: T.self) else {
      return try base.decodeIfPresent(name, parts: DirectParts.self)
    }
    guard let place = try base.locatePartIfPresent(name) else { return nil }
    return try part.read(place, from: &self) as T
  }
}

// MARK: - Types that the format stores natively

extension FieldReader {
  /// Reads a Boolean.
  public mutating func read(_ name: StaticString) throws -> Bool { try base.read(name) }

  /// Reads an integer.
  public mutating func read(_ name: StaticString) throws -> Int { try base.read(name) }

  /// Reads a floating-point number.
  public mutating func read(_ name: StaticString) throws -> Double { try base.read(name) }

  /// Reads a string.
  public mutating func read(_ name: StaticString) throws -> String { try base.read(name) }

  /// Reads bytes.
  public mutating func read(_ name: StaticString) throws -> Data { try base.read(name) }

  /// Reads a date, to the last bit.
  public mutating func read(_ name: StaticString) throws -> Date { try base.read(name) }

  /// Reads a URL.
  public mutating func read(_ name: StaticString) throws -> URL { try base.read(name) }

  /// Reads a UUID.
  public mutating func read(_ name: StaticString) throws -> UUID { try base.read(name) }

  /// Reads a Boolean; nil if the field is missing or nil.
  public mutating func readIfPresent(_ name: StaticString) throws -> Bool? {
    try base.readIfPresent(name)
  }

  /// Reads an integer; nil if the field is missing or nil.
  public mutating func readIfPresent(_ name: StaticString) throws -> Int? {
    try base.readIfPresent(name)
  }

  /// Reads a floating-point number; nil if the field is missing or nil.
  public mutating func readIfPresent(_ name: StaticString) throws -> Double? {
    try base.readIfPresent(name)
  }

  /// Reads a string; nil if the field is missing or nil.
  public mutating func readIfPresent(_ name: StaticString) throws -> String? {
    try base.readIfPresent(name)
  }

  /// Reads bytes; nil if the field is missing or nil.
  public mutating func readIfPresent(_ name: StaticString) throws -> Data? {
    try base.readIfPresent(name)
  }

  /// Reads a date, to the last bit; nil if the field is missing or nil.
  public mutating func readIfPresent(_ name: StaticString) throws -> Date? {
    try base.readIfPresent(name)
  }

  /// Reads a URL; nil if the field is missing or nil.
  public mutating func readIfPresent(_ name: StaticString) throws -> URL? {
    try base.readIfPresent(name)
  }

  /// Reads a UUID; nil if the field is missing or nil.
  public mutating func readIfPresent(_ name: StaticString) throws -> UUID? {
    try base.readIfPresent(name)
  }
}
