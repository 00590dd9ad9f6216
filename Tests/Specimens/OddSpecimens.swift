import Foundation

// Types that encode themselves in unusual ways.

/// Keyed and unkeyed containers within each other, filled in alternation.
struct Interleaved: Codable, Equatable {
  var values: [Int]
  private enum Keys: String, CodingKey { case first, later, list, sub }

  init(_ values: [Int]) { self.values = values }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Keys.self)
    let sub = try container.nestedContainer(keyedBy: Keys.self, forKey: .sub)
    var list = try container.nestedUnkeyedContainer(forKey: .list)
    values = [
      try container.decode(Int.self, forKey: .first), try sub.decode(Int.self, forKey: .first),
      try list.decode(Int.self),
    ]
    var inner = try list.nestedUnkeyedContainer()
    values.append(try inner.decode(Int.self))
    let keyed = try list.nestedContainer(keyedBy: Keys.self)
    values.append(try keyed.decode(Int.self, forKey: .later))
    values.append(try sub.decode(Int.self, forKey: .later))
    values.append(try container.decode(Int.self, forKey: .later))
    var end = try list.superDecoder().unkeyedContainer()
    values.append(try end.decode(Int.self))
    values.append(try inner.decode(Int.self))
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Keys.self)
    var sub = container.nestedContainer(keyedBy: Keys.self, forKey: .sub)
    try container.encode(values[0], forKey: .first)
    var list = container.nestedUnkeyedContainer(forKey: .list)
    try sub.encode(values[1], forKey: .first)
    try list.encode(values[2])
    var inner = list.nestedUnkeyedContainer()
    var keyed = list.nestedContainer(keyedBy: Keys.self)
    try inner.encode(values[3])
    try keyed.encode(values[4], forKey: .later)
    try sub.encode(values[5], forKey: .later)
    var again = encoder.container(keyedBy: Keys.self)
    try again.encode(values[6], forKey: .later)
    var end = list.superEncoder().unkeyedContainer()
    try end.encode(values[7])
    try inner.encode(values[8])
  }
}

/// A type that encodes nothing.
struct Nothing: Codable, Equatable {
  init() {}
  init(from decoder: any Decoder) throws {}
  func encode(to encoder: any Encoder) throws {}
}

struct Empty: Codable, Equatable {}

/// A type that requests the same container twice and overwrites a field.
struct Twice: Codable, Equatable {
  var a, b: String
  private enum Keys: CodingKey { case a, b }

  init(a: String, b: String) {
    self.a = a
    self.b = b
  }
  init(from decoder: any Decoder) throws {
    b = try decoder.container(keyedBy: Keys.self).decode(String.self, forKey: .b)
    a = try decoder.container(keyedBy: Keys.self).decode(String.self, forKey: .a)
  }
  func encode(to encoder: any Encoder) throws {
    var first = encoder.container(keyedBy: Keys.self)
    try first.encode(17, forKey: .a)
    var second = encoder.container(keyedBy: Keys.self)
    try second.encode(b, forKey: .b)
    try first.encode(a, forKey: .a)
  }
}

/// A list written through two containers.
struct TwoLists: Codable, Equatable {
  var values: [Int]
  init(_ values: [Int]) { self.values = values }
  init(from decoder: any Decoder) throws { values = try [Int](from: decoder) }
  func encode(to encoder: any Encoder) throws {
    var first = encoder.unkeyedContainer()
    for value in values.dropLast() { try first.encode(value) }
    var second = encoder.unkeyedContainer()
    if let last = values.last { try second.encode(last) }
  }
}

/// A tuple encoded as a list.
struct Pair: Codable, Equatable {
  var pair: (Int, String)
  init(_ a: Int, _ b: String) { pair = (a, b) }
  init(from decoder: any Decoder) throws {
    var container = try decoder.unkeyedContainer()
    pair = (try container.decode(Int.self), try container.decode(String.self))
  }
  func encode(to encoder: any Encoder) throws {
    var container = encoder.unkeyedContainer()
    try container.encode(pair.0)
    try container.encode(pair.1)
  }
  static func == (a: Pair, b: Pair) -> Bool { a.pair == b.pair }
}

struct Wrapped<Value: Codable & Equatable>: Codable, Equatable {
  var value: Value
  init(_ value: Value) { self.value = value }
  init(from decoder: any Decoder) throws {
    value = try decoder.singleValueContainer().decode(Value.self)
  }
  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(value)
  }
}

@propertyWrapper struct Clamped: Codable, Equatable {
  private var stored: Int
  var wrappedValue: Int {
    get { stored }
    set { stored = min(max(newValue, 0), 100) }
  }
  init(wrappedValue: Int) { stored = min(max(wrappedValue, 0), 100) }
}

struct Sliders: Codable, Equatable {
  @Clamped var left = 7
  @Clamped var right = 700
}

/// A value of any kind, decoded by trying one type after the other.
enum Anything: Codable, Equatable {
  case null
  case truth(Bool)
  case number(Int)
  case text(String)
  case list([Anything])
  case object([String: Anything])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = tried({ try container.decode(Bool.self) }) {
      self = .truth(value)
    } else if let value = tried({ try container.decode(Int.self) }) {
      self = .number(value)
    } else if let value = tried({ try container.decode(String.self) }) {
      self = .text(value)
    } else if let value = tried({ try container.decode([Anything].self) }) {
      self = .list(value)
    } else {
      self = .object(try container.decode([String: Anything].self))
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .truth(let value): try container.encode(value)
    case .number(let value): try container.encode(value)
    case .text(let value): try container.encode(value)
    case .list(let value): try container.encode(value)
    case .object(let value): try container.encode(value)
    }
  }
}

/// The result of `body`, or nil if it throws.
func tried<T>(_ body: () throws -> T) -> T? {
  do {
    return try body()
  } catch {
    // The value has another type.
    return nil
  }
}

/// The error of the types here.
struct Refusal: Error {}

/// A type that encodes a part of itself and then throws.
struct Halfway: Encodable {
  func encode(to encoder: any Encoder) throws {
    var container = encoder.unkeyedContainer()
    try container.encode("half")
    throw Refusal()
  }
}

/// A type that catches the error of a field and leaves the field out.
struct Forgiving: Codable, Equatable {
  var value: Int
  private enum Keys: CodingKey { case bad, good }

  init(value: Int) { self.value = value }
  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Keys.self)
    value = container.contains(.bad) ? -1 : try container.decode(Int.self, forKey: .good)
  }
  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Keys.self)
    do {
      try container.encode(Halfway(), forKey: .bad)
    } catch {
      // The field must be left out.
    }
    try container.encode(value, forKey: .good)
  }
}

/// An object whose field names are data.
struct Dynamic: Codable, Equatable {
  struct Key: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { return nil }
  }

  var fields: [String]
  init(_ fields: [String]) { self.fields = fields }
  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Key.self)
    fields = container.allKeys.map(\.stringValue)
    for field in fields {
      let value = try container.decode(String.self, forKey: Key(stringValue: field))
      guard value == field else { throw Refusal() }
    }
  }
  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    for field in fields { try container.encode(field, forKey: Key(stringValue: field)) }
  }
  /// Ignores the order, which JSON does not keep.
  static func == (a: Dynamic, b: Dynamic) -> Bool { a.fields.sorted() == b.fields.sorted() }
}

/// A type that decodes its fields from last to first, and some twice.
struct Backwards: Codable, Equatable {
  var a: [Int]
  var b: Item?
  var c: String
  var d: [String: String]

  init(a: [Int], b: Item?, c: String, d: [String: String]) {
    self.a = a
    self.b = b
    self.c = c
    self.d = d
  }
  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    d = try container.decode([String: String].self, forKey: .d)
    c = try container.decode(String.self, forKey: .c)
    b = try container.decodeIfPresent(Item.self, forKey: .b)
    a = try container.decode([Int].self, forKey: .a)
    d = try container.decode([String: String].self, forKey: .d)
    a = try container.decode([Int].self, forKey: .a)
  }
}
