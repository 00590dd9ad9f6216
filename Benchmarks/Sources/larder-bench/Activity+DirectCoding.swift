// Generated from Activity.swift by `swift package generate-direct-coding`. Do not edit.

import Larder

extension Untuned.Activity: DirectEnum {
  init?(case name: String, from fields: inout FieldReader) throws {
    switch name {
    case "posted":
      self = .posted(
        title: try fields.read("title"),
        text: try fields.read("text"),
        for: try fields.read("for"))
    case "liked":
      self = .liked(
        by: try fields.read("by"),
        at: try fields.read("at"))
    case "replied":
      self = .replied(
        to: try fields.read("to"),
        text: try fields.read("text"),
        try fields.readIfPresent("_2"))
    case "rated":
      self = .rated(try fields.read("_0"))
    default: return nil
    }
  }

  func write(to fields: inout FieldWriter) {
    switch self {
    case .posted(let value0, let value1, let value2):
      fields.writeCase("posted")
      fields.write(value0, as: "title")
      fields.write(value1, as: "text")
      fields.write(value2, as: "for")
    case .liked(let value0, let value1):
      fields.writeCase("liked")
      fields.write(value0, as: "by")
      fields.write(value1, as: "at")
    case .replied(let value0, let value1, let value2):
      fields.writeCase("replied")
      fields.write(value0, as: "to")
      fields.write(value1, as: "text")
      fields.writeIfPresent(value2, as: "_2")
    case .rated(let value0):
      fields.writeCase("rated")
      fields.write(value0, as: "_0")
    }
  }
}

extension Untuned.Activity.Audience: DirectEnum {
  init?(case name: String, from fields: inout FieldReader) throws {
    switch name {
    case "everyone":
      self = .everyone
    case "group":
      self = .group(
        id: try fields.read("id"),
        name: try fields.read("name"))
    case "people":
      self = .people(try fields.read("_0"))
    default: return nil
    }
  }

  func write(to fields: inout FieldWriter) {
    switch self {
    case .everyone:
      fields.writeCase("everyone")
    case .group(let value0, let value1):
      fields.writeCase("group")
      fields.write(value0, as: "id")
      fields.write(value1, as: "name")
    case .people(let value0):
      fields.writeCase("people")
      fields.write(value0, as: "_0")
    }
  }
}
