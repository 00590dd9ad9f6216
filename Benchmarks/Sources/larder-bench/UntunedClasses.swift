import Foundation

extension Untuned {
  /// A row with as many columns as a table of a real app.
  struct Wide: Codable, Equatable, Sendable {
    var field0: Int
    var field1: String
    var field2: Double
    var field3: Bool
    var field4: String?
    var field5: Int?
    var field6: Date
    var field7: UUID
    var field8: Int32
    var field9: [Int]
    var field10: Int
    var field11: String
    var field12: Double
    var field13: Bool
    var field14: String?
    var field15: Int?
    var field16: Date
    var field17: UUID
    var field18: Int32
    var field19: [Int]
    var field20: Int
    var field21: String
    var field22: Double
    var field23: Bool
    var field24: String?
    var field25: Int?
    var field26: Date
    var field27: UUID
    var field28: Int32
    var field29: [Int]
    var field30: Int
    var field31: String
    var field32: Double
    var field33: Bool
    var field34: String?
    var field35: Int?
    var field36: Date
    var field37: UUID
    var field38: Int32
    var field39: [Int]

    init(_ random: inout WorkloadRandom) {
      field0 = random.number(1_000_000)
      field1 = "text \(random.number(10_000))"
      field2 = Double(random.number(1000)) / 8
      field3 = random.next() % 2 == 0
      field4 = random.next() % 2 == 0 ? nil : "t\(random.number(100))"
      field5 = random.next() % 2 == 0 ? nil : random.number(100)
      field6 = random.date()
      field7 = random.uuid()
      field8 = Int32(random.number(1000))
      field9 = [random.number(9), 2, 3]
      field10 = random.number(1_000_000)
      field11 = "text \(random.number(10_000))"
      field12 = Double(random.number(1000)) / 8
      field13 = random.next() % 2 == 0
      field14 = random.next() % 2 == 0 ? nil : "t\(random.number(100))"
      field15 = random.next() % 2 == 0 ? nil : random.number(100)
      field16 = random.date()
      field17 = random.uuid()
      field18 = Int32(random.number(1000))
      field19 = [random.number(9), 2, 3]
      field20 = random.number(1_000_000)
      field21 = "text \(random.number(10_000))"
      field22 = Double(random.number(1000)) / 8
      field23 = random.next() % 2 == 0
      field24 = random.next() % 2 == 0 ? nil : "t\(random.number(100))"
      field25 = random.next() % 2 == 0 ? nil : random.number(100)
      field26 = random.date()
      field27 = random.uuid()
      field28 = Int32(random.number(1000))
      field29 = [random.number(9), 2, 3]
      field30 = random.number(1_000_000)
      field31 = "text \(random.number(10_000))"
      field32 = Double(random.number(1000)) / 8
      field33 = random.next() % 2 == 0
      field34 = random.next() % 2 == 0 ? nil : "t\(random.number(100))"
      field35 = random.next() % 2 == 0 ? nil : random.number(100)
      field36 = random.date()
      field37 = random.uuid()
      field38 = Int32(random.number(1000))
      field39 = [random.number(9), 2, 3]
    }
  }
}

// MARK: - Classes

extension Untuned {
  // @unchecked: nothing changes these objects after they were made.
  class Base: Codable, @unchecked Sendable {
    var name: String
    var created: Date

    init(_ random: inout WorkloadRandom) {
      (name, created) = (random.text(words: 2), random.date())
    }
  }

  /// Its superclass writes into the same object.
  // @unchecked: as its superclass.
  final class Sharing: Base, Equatable, @unchecked Sendable {
    var count: Int
    var note: String?
    private enum Keys: CodingKey { case count, note }

    override init(_ random: inout WorkloadRandom) {
      (count, note) = (random.number(1000), random.next() % 2 == 0 ? nil : "note")
      super.init(&random)
    }
    required init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Keys.self)
      count = try container.decode(Int.self, forKey: .count)
      note = try container.decodeIfPresent(String.self, forKey: .note)
      try super.init(from: decoder)
    }
    override func encode(to encoder: any Encoder) throws {
      try super.encode(to: encoder)
      var container = encoder.container(keyedBy: Keys.self)
      try container.encode(count, forKey: .count)
      try container.encodeIfPresent(note, forKey: .note)
    }
    static func == (one: Sharing, other: Sharing) -> Bool {
      (one.name, one.created, one.count, one.note)
        == (other.name, other.created, other.count, other.note)
    }
  }

  /// Its superclass writes into an object of its own.
  // @unchecked: as its superclass.
  final class Nesting: Base, Equatable, @unchecked Sendable {
    var count: Int
    private enum Keys: CodingKey { case count }

    override init(_ random: inout WorkloadRandom) {
      count = random.number(1000)
      super.init(&random)
    }
    required init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Keys.self)
      count = try container.decode(Int.self, forKey: .count)
      try super.init(from: try container.superDecoder())
    }
    override func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Keys.self)
      try container.encode(count, forKey: .count)
      try super.encode(to: container.superEncoder())
    }
    static func == (one: Nesting, other: Nesting) -> Bool {
      (one.name, one.created, one.count) == (other.name, other.created, other.count)
    }
  }
}
