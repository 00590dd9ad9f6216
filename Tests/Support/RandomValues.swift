package import Foundation

// Random values of common types.

extension SplitMix64 {
  /// Returns a number from 0 up to but not including `count`.
  package mutating func below(_ count: Int) -> Int { Int.random(in: 0..<count, using: &self) }

  /// Returns up to 19 scalars, with such that need escapes, and combining ones.
  package mutating func text() -> String {
    let scalars: [Unicode.Scalar] = ["a", "b", "\u{0}", "\u{E9}", "\u{1F600}", "\"", "\u{301}"]
    var text = ""
    for _ in 0..<below(20) { text.unicodeScalars.append(scalars[below(scalars.count)]) }
    return text
  }

  /// Returns nil in every second call.
  package mutating func maybe<T>(_ make: (inout SplitMix64) -> T) -> T? {
    below(2) == 0 ? nil : make(&self)
  }

  /// Returns up to four values.
  package mutating func some<T>(_ make: (inout SplitMix64) -> T) -> [T] {
    (0..<below(5)).map { _ in make(&self) }
  }

  /// Returns a finite number: JSON cannot encode others.
  package mutating func double() -> Double {
    let value = Double(bitPattern: next())
    return value.isFinite ? value : 0.1
  }

  /// Returns the URL of a file.
  package mutating func url() -> URL { URL(filePath: "/\(below(1000))/\(next())") }

  /// Returns an identifier.
  package mutating func uuid() -> UUID {
    let bits = (next(), next())
    return withUnsafeBytes(of: bits) { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
  }

  /// Returns up to three values by name.
  package mutating func names<T>(_ make: (inout SplitMix64) -> T) -> [String: T] {
    var names: [String: T] = [:]
    for _ in 0..<below(4) { names["\(below(9)) \(text())"] = make(&self) }
    return names
  }
}
