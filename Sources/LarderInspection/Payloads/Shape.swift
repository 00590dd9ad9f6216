import Larder

/// The types and members of a value, to compare a new value with the one that it replaces.
///
/// The value is in the form that the JSON coder writes. Elements of a list count as one place,
/// which can have values of several types.
struct Shape {
  private enum Kind: String {
    case null
    case bool = "true or false"
    case integer = "an integer"
    case fraction = "a number with a fraction"
    case text = "a string"
    case list = "a list"
    case object = "an object"
  }

  private var kinds: Set<Kind> = []
  /// The shape of all elements of lists; empty or one.
  private var elements: [Shape] = []
  private var members: [String: Shape] = [:]
  /// The number of objects with each member.
  private var counts: [String: Int] = [:]
  private var objectCount = 0

  /// The shape of a payload; nil if its coder cannot read it.
  init?(ofPayload payload: [UInt8], coder: UInt8) {
    self.init()
    let value: JSONValue?
    switch PayloadFormat(rawValue: coder) {
    case .binary: value = BinaryTree.read(payload, dates: .coded)
    case .json: value = JSONReader.read(payload)
    case .propertyList: value = PropertyListTree.read(payload, dates: .coded)
    case .bytes:
      // JSON for `Data` or `[UInt8]`.
      add(.array([.integer(0)]))
      value = .string("")
    case nil: value = nil
    }
    guard let value else { return nil }
    add(value)
  }

  private init() {}

  private mutating func add(_ value: JSONValue) {
    kinds.insert(Self.kind(of: value))
    switch value {
    case .array(let list):
      if elements.isEmpty { elements = [Shape()] }
      for element in list { elements[0].add(element) }
    case .object(let fields):
      objectCount += 1
      for (name, value) in fields {
        members[name, default: Shape()].add(value)
        counts[name, default: 0] += 1
      }
    case .null, .bool, .number, .string: break
    }
  }

  private static func kind(of value: JSONValue) -> Kind {
    switch value {
    case .null: .null
    case .bool: .bool
    case .number(let text): text.contains { ".eE".contains($0) } ? .fraction : .integer
    case .string: .text
    case .array: .list
    case .object: .object
    }
  }

  /// How a new value differs, with the place of each difference, such as `.tags[]`; empty if it has
  /// the same types and members.
  ///
  /// A place that is null here, or an empty list, can have any values: its type is not known.
  func differences(of value: JSONValue, at place: String = "") -> [String] {
    let (here, kind) = (place.isEmpty ? "the value" : place, Self.kind(of: value))
    guard !kinds.subtracting([.null]).isEmpty else { return [] }
    // A number with a fraction is read from one without it, too.
    guard kinds.contains(kind) || kind == .integer && kinds.contains(.fraction) else {
      let known = kinds.subtracting([.null]).map(\.rawValue).sorted().joined(separator: " or ")
      return ["\(here) is \(kind.rawValue) in place of \(known)"]
    }
    switch value {
    case .array(let list):
      var found: [String] = []
      for element in list {
        for difference in elements[0].differences(of: element, at: place + "[]")
        where found.count < Self.limit && !found.contains(difference) { found.append(difference) }
      }
      return found
    case .object(let fields):
      let names = Set(fields.map(\.name))
      let missing = counts.filter { $0.value == objectCount && !names.contains($0.key) }
      return missing.keys.sorted().map { "\(here) has no member \($0)" }
        + fields.flatMap { name, value in
          members[name]?.differences(of: value, at: "\(place).\(name)")
            ?? ["\(here) has a new member \(name)"]
        }
    case .null, .bool, .number, .string: return []
    }
  }

  /// The number of differences that are collected of a list.
  private static let limit = 10
}
