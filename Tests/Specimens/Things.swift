import Foundation
import LarderTestSupport

/// Fields of every kind, whose order and number depend on the value.
indirect enum Thing: Codable, Equatable {
  case none
  case scalar(Widths)
  case item(Item)
  case optionals(Optionals)
  case list([Thing])
  case named([String: Thing])
  case numbered([Int: Thing])
  case keyed(Dynamic, Expression)
  case odd(Interleaved, Twice, first: Backwards?)
  case numbers([Double], [Int16], [UInt8], [Bool])
  case texts([String], Set<String>, [String?])
  case anything(Anything)
}

extension SplitMix64 {
  mutating func item() -> Item {
    Item(id: uuid(), description: maybe { $0.text() }, location: maybe { $0.text() }, url: url())
  }

  private mutating func optionals() -> Optionals {
    Optionals(
      a: maybe { Int(truncatingIfNeeded: $0.next()) }, b: maybe { $0.text() },
      c: maybe { $0.some { random in random.maybe { $0.below(9) } } }, d: maybe { $0.item() },
      e: maybe { $0.below(2) == 0 }, f: maybe { $0.double() }, g: maybe { UInt8($0.below(256)) },
      h: nil, i: maybe { Date(timeIntervalSinceReferenceDate: Double($0.below(1 << 40))) },
      j: maybe { Data($0.bytes($0.below(40))) }, k: maybe { $0.url() },
      l: maybe { Int128($0.next()) * 3 })
  }

  private mutating func widths() -> Widths {
    Widths(
      truth: below(2) == 0, a: Int8(truncatingIfNeeded: next()),
      b: Int16(truncatingIfNeeded: next()), c: Int32(truncatingIfNeeded: next()),
      d: Int64(bitPattern: next()), e: Int128(next()) << 60, f: Int(truncatingIfNeeded: next()),
      g: UInt8(truncatingIfNeeded: next()), h: UInt16(truncatingIfNeeded: next()),
      i: UInt32(truncatingIfNeeded: next()), j: next(), k: UInt128(next()) << 64,
      l: UInt(next()), m: Float(below(1000)) / 8, n: double(), text: text())
  }

  private mutating func expression(_ depth: Int) -> Expression {
    switch depth == 0 ? 0 : below(4) {
    case 0: .nothing
    case 1: .number(double())
    case 2: .sum(expression(depth - 1), expression(depth - 1))
    default: .named(name: text(), value: maybe { $0.expression(depth - 1) })
    }
  }

  private mutating func anything(_ depth: Int) -> Anything {
    switch below(depth == 0 ? 4 : 6) {
    case 0: .null
    case 1: .truth(below(2) == 0)
    case 2: .number(below(1000) - 500)
    case 3: .text(text())
    case 4: .list(some { $0.anything(depth - 1) })
    default: .object(names { $0.anything(depth - 1) })
    }
  }

  /// Returns a value with at most `depth` levels of things.
  mutating func thing(depth: Int) -> Thing {
    let inner = max(0, depth - 1)
    switch depth == 0 ? 0 : below(12) {
    case 0: return .none
    case 1: return .scalar(widths())
    case 2: return .item(item())
    case 3: return .optionals(optionals())
    case 4: return .list(some { $0.thing(depth: inner) })
    case 5: return .named(names { $0.thing(depth: inner) })
    case 6:
      var things: [Int: Thing] = [:]
      for _ in 0..<below(4) { things[below(100) - 50] = thing(depth: inner) }
      return .numbered(things)
    case 7: return .keyed(Dynamic((0..<below(12)).map { "f\($0)" }), expression(3))
    case 8:
      let odd = Interleaved((0..<9).map { _ in below(1000) })
      let back = maybe { random in
        Backwards(
          a: random.some { $0.below(9) }, b: random.maybe { $0.item() }, c: random.text(),
          d: random.names { $0.text() })
      }
      return .odd(odd, Twice(a: text(), b: text()), first: back)
    case 9:
      return .numbers(
        some { $0.double() }, some { Int16(truncatingIfNeeded: $0.next()) }, bytes(below(30)),
        some { $0.below(2) == 0 })
    case 10:
      return .texts(
        some { $0.text() }, Set(some { $0.text() }), some { r in r.maybe { $0.text() } })
    default: return .anything(anything(3))
    }
  }
}
