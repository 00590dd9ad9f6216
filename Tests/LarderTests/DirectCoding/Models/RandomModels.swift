import Foundation
import Larder
import LarderTestSupport

// Random values of the types in Models.swift, and all of these types.

/// A type with random values.
protocol RandomModel: Equatable {
  init(_ random: inout SplitMix64)
}

extension Models {
  /// The types whose values are compared, each in a few ways.
  static let all: [any (DirectCoding & RandomModel).Type] = [
    Scalars.self, Widths.self, Leaf.self, LaterLeaf.self, Nest.self, LaterNest.self,
    Collections.self, Place.self, Mixed.self, Tree.self, Pair<Leaf, [Leaf]>.self,
    Pair<Pair<Int, String>, Mixed>.self, Named.self, Log.self,
    LaterLog.self,
  ]
}

extension SplitMix64 {
  fileprivate mutating func integer() -> Int {
    below(2) == 0 ? below(1000) - 500 : Int(truncatingIfNeeded: next())
  }

  fileprivate mutating func date() -> Date {
    Date(timeIntervalSinceReferenceDate: Double(below(1 << 40)) / 1000)
  }

  fileprivate mutating func data() -> Data { Data(bytes(below(40))) }

  /// Returns a number, sometimes one that is not equal to itself.
  fileprivate mutating func number() -> Double {
    below(50) == 0 ? .nan : below(20) == 0 ? -.infinity : double()
  }

  fileprivate mutating func model<T: RandomModel>(_ type: T.Type = T.self) -> T { T(&self) }
}

extension Models.Scalars: RandomModel {
  init(_ random: inout SplitMix64) {
    (bool, int, double) = (random.below(2) == 0, random.integer(), random.number())
    (string, data, date) = (random.text(), random.data(), random.date())
    (url, uuid) = (random.url(), random.uuid())
    maybeBool = random.maybe { $0.below(2) == 0 }
    maybeInt = random.maybe { $0.integer() }
    maybeDouble = random.maybe { $0.number() }
    maybeString = random.maybe { $0.text() }
    maybeData = random.maybe { $0.data() }
    maybeDate = random.maybe { $0.date() }
    maybeURL = random.maybe { $0.url() }
    maybeUUID = random.maybe { $0.uuid() }
  }
}

extension Models.Widths: RandomModel {
  init(_ random: inout SplitMix64) {
    int8 = Int8(truncatingIfNeeded: random.next())
    uint16 = random.maybe { UInt16(truncatingIfNeeded: $0.next()) }
    (int32, uint64) = (Int32(truncatingIfNeeded: random.next()), random.next())
    float = random.maybe { Float($0.below(1000)) / 8 }
    integers = random.some { $0.integer() }
    doubles = random.some { $0.number() }
    maybeIntegers = random.maybe { random in random.some { $0.integer() } }
    bytes = random.bytes(random.below(20))
    floats = random.some { Float($0.below(1000)) / 8 }
    booleans = random.some { $0.below(2) == 0 }
    last = random.integer()
  }
}

extension Models.Leaf: RandomModel {
  init(_ random: inout SplitMix64) {
    (id, name) = (random.integer(), random.maybe { $0.text() })
  }
}

extension Models.LaterLeaf: RandomModel {
  init(_ random: inout SplitMix64) {
    (name, id) = (random.maybe { $0.text() }, random.double())
    added = random.maybe { random in random.some { $0.text() } }
  }
}

extension Models.Nest: RandomModel {
  init(_ random: inout SplitMix64) {
    (leaf, maybe) = (random.model(), random.maybe { $0.model() })
    leaves = random.some { $0.model() }
    maybeLeaves = random.maybe { random in random.some { $0.model() } }
    named = random.names { $0.model() }
    maybeNamed = random.maybe { random in random.names { $0.model() } }
    (scalars, after) = (random.below(4) == 0 ? [random.model()] : [], random.integer())
  }
}

extension Models.LaterNest: RandomModel {
  init(_ random: inout SplitMix64) {
    after = random.maybe { $0.integer() }
    maybeNamed = random.maybe { random in random.names { $0.model() } }
    (leaves, leaf) = (random.some { $0.model() }, random.maybe { $0.model() })
  }
}

extension Models.Collections: RandomModel {
  init(_ random: inout SplitMix64) {
    matrix = random.some { random in random.some { $0.model() } }
    holes = random.some { random in random.maybe { $0.model() } }
    numbered = [random.below(9): random.model(), random.below(9) + 9: random.model()]
    lists = random.names { random in random.some { $0.model() } }
    (texts, numbers) = (Set(random.some { $0.text() }), Set(random.some { $0.integer() }))
    leaves = Set(random.some { $0.model() })
    (strings, blobs) = (random.some { $0.text() }, random.some { $0.data() })
    (dates, links) = (random.some { $0.date() }, random.some { $0.url() })
    identifiers = [random.uuid(): random.integer()]
  }
}

extension Models.Place: RandomModel {
  init(_ random: inout SplitMix64) { (x, y) = (random.below(9), random.maybe { $0.integer() }) }
}

extension Models.Mixed: RandomModel {
  init(_ random: inout SplitMix64) {
    kind = Kind.allCases[random.below(3)]
    (shape, shapes) = (Self.shape(&random, 3), random.some { Self.shape(&$0, 2) })
    plain = random.model()
    plains = random.maybe { random in random.some { $0.model() } }
    (leaf, large) = (random.model(), random.maybe { Int128($0.next()) * 3 })
    decimal = Decimal(random.below(1 << 40)) / 1000
  }

  fileprivate static func shape(_ random: inout SplitMix64, _ depth: Int) -> Shape {
    switch random.below(depth == 0 ? 2 : 4) {
    case 0: .none
    case 1: .circle(random.number())
    case 2: .polygon(points: random.some { $0.model() }, of: random.maybe { $0.model() })
    default: .group(random.some { shape(&$0, depth - 1) })
    }
  }
}

extension Models.Plain: RandomModel {
  init(_ random: inout SplitMix64) {
    leaf = random.model()
    nest = random.names { random in random.maybe { $0.integer() } }
  }
}

extension Models.Tree: RandomModel {
  init(_ random: inout SplitMix64) { self.init(&random, 3) }

  private init(_ random: inout SplitMix64, _ depth: Int) {
    value = random.text()
    children = depth == 0 ? [] : random.some { Self(&$0, depth - 1) }
    named =
      depth == 0
      ? nil : random.maybe { random in random.names { Self(&$0, depth - 2 < 0 ? 0 : depth - 2) } }
  }
}

extension Models.Pair: RandomModel where First: RandomModel, Second: RandomModel {
  init(_ random: inout SplitMix64) {
    (first, second) = (random.model(), random.maybe { $0.model() })
  }
}

extension Models.Named: RandomModel {
  init(_ random: inout SplitMix64) {
    (a, b, c) = (random.integer(), random.text(), random.maybe { $0.model() })
  }
}

extension Models.Event: RandomModel {
  init(_ random: inout SplitMix64) { self.init(&random, 2) }

  private init(_ random: inout SplitMix64, _ depth: Int) {
    func event(_ random: inout SplitMix64) -> Self { Self(&random, depth - 1) }
    switch random.below(depth == 0 ? 6 : 9) {
    case 0:
      self = .opened(url: random.url(), at: random.maybe { $0.date() }, random.model())
    case 1: self = .note(random.text())
    case 2: self = .closed
    case 3:
      self = .measured(
        random.number(), id: random.maybe { $0.uuid() }, random.some { $0.integer() },
        isFinal: random.below(2) == 0)
    case 4:
      self = .moved(
        random.maybe { $0.model() }, leaves: random.some { $0.model() }, blob: random.data())
    case 5: self = .default(fields: random.integer(), in: random.model())
    case 6: self = .replaced(event(&random), by: random.maybe { event(&$0) })
    case 7: self = .several(random.some { event(&$0) }, named: random.names { event(&$0) })
    default:
      self = .drawn(
        Models.Mixed.shape(&random, 2), as: Models.Mixed.Kind.allCases[random.below(3)],
        holes: random.some { random in random.maybe { event(&$0) } })
    }
  }
}

extension Models.Step: RandomModel {
  init(_ random: inout SplitMix64) { self.init(&random, 3) }

  private init(_ random: inout SplitMix64, _ depth: Int) {
    func step(_ random: inout SplitMix64) -> Self { Self(&random, depth - 1) }
    switch random.below(depth == 0 ? 7 : 10) {
    case 0: self = .none
    case 1:
      self = .labels(
        name: random.text(), count: random.integer(), at: random.maybe { $0.date() })
    case 2: self = .plain(random.double(), random.below(2) == 0)
    case 3: self = .plainToo(random.double(), random.below(2) == 0)
    case 4:
      self = .mixed(
        random.uuid(), url: random.maybe { $0.url() }, random.some { $0.integer() },
        names: random.some { $0.text() })
    case 5: self = .leaf(random.model(), random.maybe { $0.model() })
    case 6:
      let kinds = Models.Mixed.Kind.allCases
      self = .kind(kinds[random.below(3)], random.maybe { kinds[$0.below(3)] })
    case 7: self = .then(step(&random), random.maybe { step(&$0) })
    case 8:
      self = .all(
        random.some { step(&$0) }, random.some { random in random.maybe { step(&$0) } },
        named: random.names { step(&$0) })
    default:
      self = .either(
        random.below(2) == 0 ? .first(random.integer()) : .both(7, step(&random)))
    }
  }
}

extension Models.LaterEvent: RandomModel {
  init(_ random: inout SplitMix64) {
    switch random.below(5) {
    case 0: self = .note(random.maybe { $0.text() }, author: random.maybe { $0.text() })
    case 1: self = .closed(at: random.maybe { $0.date() })
    case 2: self = .measured(isFinal: random.below(2) == 0)
    case 3:
      self = .moved(
        leaves: random.maybe { random in random.some { $0.model() } },
        random.maybe { $0.model() })
    default: self = .forgotten
    }
  }
}

extension Models.Either: RandomModel where First: RandomModel, Second: RandomModel {
  init(_ random: inout SplitMix64) {
    switch random.below(3) {
    case 0: self = .first(random.model())
    case 1: self = .second(random.model())
    default: self = .both(random.maybe { $0.model() }, random.model())
    }
  }
}

extension Models.Log: RandomModel {
  init(_ random: inout SplitMix64) {
    (first, last) = (random.model(), random.maybe { $0.model() })
    (events, named) = (random.some { $0.model() }, random.names { $0.model() })
    groups = random.maybe { random in
      random.some { random in random.some { random in random.maybe { $0.model() } } }
    }
    (choice, after) = (random.model(), random.integer())
  }
}

extension Models.LaterLog: RandomModel {
  init(_ random: inout SplitMix64) {
    (after, first) = (random.integer(), random.maybe { $0.model() })
    events = random.some { $0.model() }
  }
}

extension Int: RandomModel {
  init(_ random: inout SplitMix64) { self = random.integer() }
}

extension String: RandomModel {
  init(_ random: inout SplitMix64) { self = random.text() }
}

extension Array: RandomModel where Element: RandomModel {
  init(_ random: inout SplitMix64) { self = random.some { Element(&$0) } }
}
