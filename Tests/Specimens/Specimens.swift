package import Foundation

// One type for each way in which a type can encode itself. OddSpecimens.swift has the unusual ones.

/// An item of a feed.
package struct Item: Codable, Equatable, Sendable {
  package var id: UUID
  package var description: String?
  package var location: String?
  package var url: URL

  package init(id: UUID, description: String?, location: String?, url: URL) {
    (self.id, self.description, self.location, self.url) = (id, description, location, url)
  }
}

struct CharacterItem: Codable, Equatable {
  var id: Int
  var name, status, species, gender: String
  var image: URL
}

struct Widths: Codable, Equatable {
  var truth = true
  var a: Int8 = .min
  var b: Int16 = .min
  var c: Int32 = .min
  var d: Int64 = .min
  var e: Int128 = .min
  var f: Int = .max
  var g: UInt8 = .max
  var h: UInt16 = .max
  var i: UInt32 = .max
  var j: UInt64 = .max
  var k: UInt128 = .max
  var l: UInt = .max
  var m: Float = -.greatestFiniteMagnitude
  var n: Double = .leastNonzeroMagnitude
  var text = "\u{0}\u{E9}\u{1F600}"
}

struct Optionals: Codable, Equatable {
  var a: Int?
  var b: String?
  var c: [Int?]?
  var d: Item?
  var e: Bool?
  var f: Double??
  var g: UInt8?
  var h: [String: Int?]?
  var i: Date?
  var j: Data?
  var k: URL?
  var l: Int128?
}

class Animal: Codable {
  var name: String
  init(name: String) { self.name = name }
}

/// A subclass whose superclass uses its own encoder.
final class Dog: Animal {
  var age: Int
  private enum CodingKeys: CodingKey { case age }

  init(name: String, age: Int) {
    self.age = age
    super.init(name: name)
  }
  required init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    age = try container.decode(Int.self, forKey: .age)
    try super.init(from: try container.superDecoder())
  }
  override func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try super.encode(to: container.superEncoder())
    try container.encode(age, forKey: .age)
  }
}

/// A subclass whose superclass writes into the same object through its own container.
final class Cat: Animal {
  var lives: Int
  private enum CodingKeys: CodingKey { case lives }

  init(name: String, lives: Int) {
    self.lives = lives
    super.init(name: name)
  }
  required init(from decoder: any Decoder) throws {
    lives = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .lives)
    try super.init(from: decoder)
  }
  override func encode(to encoder: any Encoder) throws {
    try super.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(lives, forKey: .lives)
  }
}

enum Suit: String, Codable, CaseIterable { case clubs, hearts }
enum Level: Int, Codable { case low = -1, high = 1 }

indirect enum Expression: Codable, Equatable {
  case nothing
  case number(Double)
  case sum(Expression, Expression)
  case named(name: String, value: Expression?)
}

/// A tree.
package struct Node: Codable, Equatable {
  package var value: Int
  package var children: [Node]

  package init(value: Int, children: [Node] = []) {
    (self.value, self.children) = (value, children)
  }
}
