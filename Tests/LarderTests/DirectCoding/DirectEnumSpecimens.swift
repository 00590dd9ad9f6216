import Foundation
import LarderTestSupport

@testable import Larder

/// An enum that counts the calls of its Codable functions.
indirect enum ObservedEnum: DirectEnum, Equatable {
  case none
  case one(Int)
  case text(String, more: String?)
  case nest(ObservedEnum)

  private enum CaseKeys: CodingKey { case none, one, text, nest }
  private enum FieldKeys: String, CodingKey {
    case first = "_0"
    case more
  }

  init(from decoder: any Decoder) throws {
    Observed.calls?.add()
    let cases = try decoder.container(keyedBy: CaseKeys.self)
    guard let key = cases.allKeys.first else {
      throw DecodingError.dataCorrupted(
        DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "no case"))
    }
    let fields = try cases.nestedContainer(keyedBy: FieldKeys.self, forKey: key)
    switch key {
    case .none: self = .none
    case .one: self = .one(try fields.decode(Int.self, forKey: .first))
    case .text:
      self = .text(
        try fields.decode(String.self, forKey: .first),
        more: try fields.decodeIfPresent(String.self, forKey: .more))
    case .nest: self = .nest(try fields.decode(ObservedEnum.self, forKey: .first))
    }
  }

  func encode(to encoder: any Encoder) throws {
    Observed.calls?.add()
    var cases = encoder.container(keyedBy: CaseKeys.self)
    func fields(_ key: CaseKeys) -> KeyedEncodingContainer<FieldKeys> {
      cases.nestedContainer(keyedBy: FieldKeys.self, forKey: key)
    }
    switch self {
    case .none: _ = fields(.none)
    case .one(let number):
      var fields = fields(.one)
      try fields.encode(number, forKey: .first)
    case .text(let text, let more):
      var fields = fields(.text)
      try fields.encode(text, forKey: .first)
      try fields.encodeIfPresent(more, forKey: .more)
    case .nest(let inner):
      var fields = fields(.nest)
      try fields.encode(inner, forKey: .first)
    }
  }

  init?(case name: String, from fields: inout FieldReader) throws {
    switch name {
    case "none": self = .none
    case "one": self = .one(try fields.read("_0"))
    case "text": self = .text(try fields.read("_0"), more: try fields.readIfPresent("more"))
    case "nest": self = .nest(try fields.read("_0"))
    default: return nil
    }
  }

  func write(to fields: inout FieldWriter) {
    switch self {
    case .none: fields.writeCase("none")
    case .one(let number):
      fields.writeCase("one")
      fields.write(number, as: "_0")
    case .text(let text, let more):
      fields.writeCase("text")
      fields.write(text, as: "_0")
      fields.writeIfPresent(more, as: "more")
    case .nest(let inner):
      fields.writeCase("nest")
      fields.write(inner, as: "_0")
    }
  }
}

/// A later version of ``ObservedEnum``, in which a case has a new field.
enum LaterObserved: DirectEnum, Equatable {
  case none(added: Int?)

  init(from decoder: any Decoder) throws {
    Observed.calls?.add()
    self = .none(added: nil)
  }

  func encode(to encoder: any Encoder) throws { Observed.calls?.add() }

  init?(case name: String, from fields: inout FieldReader) throws {
    guard name == "none" else { return nil }
    self = .none(added: try fields.readIfPresent("added"))
  }

  func write(to fields: inout FieldWriter) {}
}

/// An enum that breaks the rules in many ways.
enum Unruly: Codable, Equatable {
  case link(URL)
  case withoutCase(Int)
  case twice(Int)
  case leavesOut(Int, Int)
  case varies(Int?)
  case misnamed(Int)
  case withoutField(Int)
  case other(Int)
}

extension Unruly: DirectEnum {
  init?(case name: String, from fields: inout FieldReader) throws {
    switch name {
    case "link": self = .link(try fields.read("_0"))
    case "leavesOut": self = .leavesOut(try fields.read("_0"), try fields.read("_1"))
    case "varies": self = .varies(try fields.readIfPresent("_0"))
    case "other": self = .other(try fields.read("_0"))
    case "withoutField": throw CancellationError()
    default: return nil
    }
  }

  func write(to fields: inout FieldWriter) {
    switch self {
    case .link(let url):
      fields.writeCase("link")
      fields.write(url, as: "_0")
    case .withoutCase(let number): fields.write(number, as: "_0")
    case .twice(let number):
      fields.writeCase("twice")
      fields.writeCase("twice")
      fields.write(number, as: "_0")
    case .leavesOut(let number, _):
      fields.writeCase("leavesOut")
      fields.write(number, as: "_0")
    case .varies(let number):
      fields.writeCase("varies")
      if let number { fields.write(number, as: "_0") }
    case .misnamed(let number):
      fields.writeCase("named otherwise")
      fields.write(number, as: "_0")
    case .withoutField: fields.writeCase("withoutField")
    case .other(let number):
      fields.writeCase("other")
      fields.write(number, as: "_0")
    }
  }
}

/// A struct that writes a case, which only an enum may do.
struct CaseWriter: DirectCoding, Equatable {
  var x = 1
  init() {}
  init(from fields: inout FieldReader) throws { x = try fields.read("x") }

  func write(to fields: inout FieldWriter) {
    fields.writeCase("x")
    fields.write(x, as: "x")
  }
}

/// An enum whose only case leaves out a field.
enum Hopeless: Codable, Equatable {
  case forgetful(Int)
}

extension Hopeless: DirectEnum {
  init?(case name: String, from fields: inout FieldReader) throws { return nil }

  func write(to fields: inout FieldWriter) {
    Observed.calls?.add()
    fields.writeCase("forgetful")
  }
}

/// An enum that only one test uses.
indirect enum Fresh: Codable, Equatable {
  case a(Int)
  case b(String)
  case c
  case d(Fresh, Fresh?)
}

extension Fresh: DirectEnum {
  init?(case name: String, from fields: inout FieldReader) throws {
    switch name {
    case "a": self = .a(try fields.read("_0"))
    case "b": self = .b(try fields.read("_0"))
    case "c": self = .c
    case "d": self = .d(try fields.read("_0"), try fields.readIfPresent("_1"))
    default: return nil
    }
  }

  func write(to fields: inout FieldWriter) {
    switch self {
    case .a(let number):
      fields.writeCase("a")
      fields.write(number, as: "_0")
    case .b(let text):
      fields.writeCase("b")
      fields.write(text, as: "_0")
    case .c: fields.writeCase("c")
    case .d(let one, let other):
      fields.writeCase("d")
      fields.write(one, as: "_0")
      fields.writeIfPresent(other, as: "_1")
    }
  }
}
