import Foundation

// Types of kinds that the coder has no fast way for, as they are found in apps. None of them has
// direct coding but `Activity`.

enum Untuned {
  /// The values of a dictionary.
  struct Setting: Codable, Equatable, Sendable {
    var value: String
    var isDefault: Bool
    var changed: Date?
    var sources: [String]

    init(_ random: inout WorkloadRandom) {
      value = random.text(words: 3)
      isDefault = random.next() % 2 == 0
      changed = random.next() % 2 == 0 ? nil : random.date()
      sources = (0..<random.number(3)).map { _ in "source \(random.number(100))" }
    }
  }

  /// Keys that are not ASCII, and longer than a small string.
  struct Foreign: Codable, Equatable, Sendable {
    var width: Double
    var street: String
    var note: String?
    var isOpen: Bool
    var number: Int

    private enum CodingKeys: String, CodingKey {
      case width = "gr\u{F6}\u{DF}e"
      case street = "stra\u{DF}e und hausnummer der filiale"
      case note = "\u{6CE8}\u{91C8}"
      case isOpen = "ge\u{F6}ffnet"
      case number = "\u{43D}\u{43E}\u{43C}\u{435}\u{440}"
    }

    init(_ random: inout WorkloadRandom) {
      width = Double(random.number(10_000)) / 8
      street = "Stra\u{DF}e \(random.number(1000))"
      note = random.next() % 2 == 0 ? nil : random.text(words: 4)
      (isOpen, number) = (random.next() % 2 == 0, random.number(100_000))
    }
  }

  /// Optionals of and within each other.
  struct Holes: Codable, Equatable, Sendable {
    var twice: Int??
    var list: [Int?]?
    var lists: [[String?]?]
    var named: [String: Double?]?

    init(_ random: inout WorkloadRandom) {
      // As JSON, the format has one nil only.
      twice = random.next() % 2 == 0 ? nil : .some(7)
      list =
        random.next() % 4 == 0
        ? nil : (0..<8).map { _ in random.next() % 3 == 0 ? nil : random.number(1000) }
      lists = (0..<3).map { _ in
        random.next() % 3 == 0
          ? nil : (0..<3).map { _ in random.next() % 3 == 0 ? nil : random.text(words: 2) }
      }
      named = ["a": nil, "b": Double(random.number(100)), "c": nil]
    }
  }

  /// Types of Foundation, and ranges, sets and dictionaries with keys that are not strings.
  struct Foundations: Codable, Equatable, Sendable {
    var price: Decimal
    var length: Measurement<UnitLength>
    var interval: DateInterval
    var components: DateComponents
    var range: Range<Int>
    var tags: Set<String>
    var byNumber: [Int: String]
    var byID: [UUID: Double]

    init(_ random: inout WorkloadRandom) {
      price = Decimal(random.number(1_000_000)) / 100
      length = Measurement(value: Double(random.number(1000)), unit: .meters)
      interval = DateInterval(start: random.date(), duration: 3600)
      components = DateComponents(year: 2026, month: random.number(12) + 1, day: 3)
      range = 0..<(1 + random.number(100))
      tags = Set((0..<4).map { _ in "tag \(random.number(1000))" })
      byNumber = [random.number(100): random.text(words: 2), 100 + random.number(100): "b"]
      byID = [random.uuid(): 0.5, random.uuid(): 1.5]
    }
  }

  /// An identifier of a type of its own, as a value that is nothing but another one.
  struct Identifier: RawRepresentable, Codable, Hashable, Sendable { var rawValue: String }

  /// A tree, with values that are encoded as single values.
  struct Folder: Codable, Equatable, Sendable {
    var id: Identifier
    var name: String
    var folders: [Folder]
    var files: [String: Identifier]

    init(_ random: inout WorkloadRandom, depth: Int = 3) {
      (id, name) = (Identifier(rawValue: "id-\(random.number(1_000_000))"), random.text(words: 2))
      folders = depth == 0 ? [] : (0..<3).map { _ in Folder(&random, depth: depth - 1) }
      files = [:]
      for index in 0..<3 { files["file \(index)"] = Identifier(rawValue: "\(random.next())") }
    }
  }

  /// A value of any kind, whose decoder tries one kind after another.
  enum Anything: Codable, Equatable, Sendable {
    case number(Double)
    case text(String)
    case list([Anything])
    case object([String: Anything])

    init(_ random: inout WorkloadRandom, depth: Int = 3) {
      switch depth == 0 ? random.next() % 2 : 2 + random.next() % 2 {
      case 0: self = .number(Double(random.number(1000)) / 4)
      case 1: self = .text(random.text(words: 3))
      case 2: self = .list((0..<4).map { _ in Anything(&random, depth: depth - 1) })
      default:
        var object: [String: Anything] = [:]
        for index in 0..<4 { object["key \(index)"] = Anything(&random, depth: depth - 1) }
        self = .object(object)
      }
    }

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      do {
        self = .number(try container.decode(Double.self))
      } catch {
        do {
          self = .text(try container.decode(String.self))
        } catch {
          do {
            self = .list(try container.decode([Anything].self))
          } catch {
            self = .object(try container.decode([String: Anything].self))
          }
        }
      }
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      switch self {
      case .number(let number): try container.encode(number)
      case .text(let text): try container.encode(text)
      case .list(let list): try container.encode(list)
      case .object(let object): try container.encode(object)
      }
    }
  }
}

extension WorkloadRandom {
  mutating func number(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

  mutating func date() -> Date {
    Date(timeIntervalSinceReferenceDate: Double(number(800_000_000)))
  }

  mutating func uuid() -> UUID {
    let bits = (next(), next())
    return withUnsafeBytes(of: bits) { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
  }

  mutating func text(words: Int) -> String {
    (0..<words).map { _ in "word\(number(1000))" }.joined(separator: " ")
  }
}
