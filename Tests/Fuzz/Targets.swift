import Foundation
@testable import Larder

/// A type to decode payloads to, and the properties that must hold.
///
/// A decoded value must encode, with the stream and with the tree, to payloads that decode to an
/// equal value.
struct Target: Sendable {
  let check: @Sendable ([UInt8]) -> Void

  private init<T: Codable & Equatable & SendableMetatype>(_ type: T.Type) {
    self.init(type) { $0 == $1 }
  }

  private init<T: Codable & SendableMetatype>(
    _ type: T.Type, isEqual: @escaping @Sendable (T, T) -> Bool
  ) {
    check = { payload in
      guard let value = tried({ try decode(type, from: payload) }) else { return }
      do {
        // If two decoded values are not equal, they contain a NaN; then the bits are compared.
        let hasNaN = !isEqual(try decode(type, from: payload), value)
        let streamed = try written { try Binary.encode(value, into: &$0) }
        let byTree = try written { try Binary.encodeByTree(value, into: &$0) }
        for bytes in [streamed, byTree] {
          let back = try decode(type, from: bytes)
          let again = try written { try Binary.encode(back, into: &$0) }
          guard hasNaN ? isSame(again, streamed) : isEqual(back, value) else {
            fatalError("\(type): \(value) came back as \(back)")
          }
        }
      } catch {
        fatalError("\(type): \(error) for \(value)")
      }
    }
  }

  static let all: [Target] = [
    Target([Item].self), Target(Optionals.self), Target([Widths].self),
    Target([String: [Int]].self), Target(Node.self), Target([Expression].self),
    Target(Interleaved.self), Target(Anything.self), Target(Backwards.self),
    Target([Double].self), Target(Dog.self) { $0.name == $1.name && $0.age == $1.age },
    Target([Data].self), Target(Cat.self) { $0.name == $1.name && $0.lives == $1.lives },
    Target([CharacterItem].self), Target(Suit.self), Target(Level.self), Target([Empty].self),
    Target(Twice.self), Target(TwoLists.self), Target(Pair.self),
    Target(Wrapped<Wrapped<String>>.self), Target(Sliders.self), Target(Forgiving.self),
    Target([Dynamic].self), Target([Int: [String]].self), Target([UUID: Bool].self),
    Target(Set<Int>.self), Target([[Int]].self), Target([Float].self), Target([Bool].self),
    Target([String?].self), Target([URL].self), Target(Bool.self), Target(String.self),
    Target(Data.self), Target(URL.self), Target(Int?.self), Target(Date.self), Target(UUID.self),
    Target(Decimal.self), Target(Nothing.self), Target([String: Optionals].self),
    Target([Wrapped<[Int16?]>].self), Target([UInt8].self), Target([Int128].self),
    Target(Double.self),
  ]
}

func decode<T: Decodable>(_ type: T.Type, from bytes: [UInt8]) throws -> T {
  try Binary.decode(type, from: bytes.span.bytes)
}

/// Whether two payloads have the same value to the last bit, in any order of maps.
private func isSame(_ one: [UInt8], _ other: [UInt8]) -> Bool {
  guard let one = Binary.read(one.span.bytes), let other = Binary.read(other.span.bytes) else {
    return false
  }
  return text(of: one) == text(of: other)
}
