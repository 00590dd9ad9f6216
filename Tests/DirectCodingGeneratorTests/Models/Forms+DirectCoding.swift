// Generated from Forms.swift by `swift package generate-direct-coding`. Do not edit.

public import Larder

extension Properties: DirectCoding {
  init(from fields: inout FieldReader) throws {
    plain = try fields.read("plain")
    constant = try fields.read("constant")
    first = try fields.read("first")
    second = try fields.read("second")
    third = try fields.read("third")
    a = try fields.read("a")
    b = try fields.read("b")
    c = try fields.read("c")
    optional = try fields.readIfPresent("optional")
    spelledOut = try fields.readIfPresent("spelledOut")
    qualified = try fields.readIfPresent("qualified")
    implicit = try fields.readIfPresent("implicit")
    negative = try fields.read("negative")
    isOn = try fields.read("isOn")
    list = try fields.read("list")
    named = try fields.read("named")
    nested = try fields.readIfPresent("nested")
    set = try fields.read("set")
    afterSemicolon = try fields.read("afterSemicolon")
    raw = try fields.read("raw")
    quote = try fields.read("quote")
    text = try fields.read("text")
    interpolated = try fields.read("interpolated")
    computedOnce = try fields.read("computedOnce")
    chained = try fields.read("chained")
    summed = try fields.read("summed")
    conditional = try fields.read("conditional")
    generic = try fields.read("generic")
    small = try fields.read("small")
    ratio = try fields.read("ratio")
    data = try fields.read("data")
    date = try fields.read("date")
    id = try fields.read("id")
    url = try fields.readIfPresent("url")
    mood = try fields.read("mood")
    moods = try fields.read("moods")
    inner = try fields.read("inner")
    inners = try fields.read("inners")
    watched = try fields.read("watched")
    `default` = try fields.read("default")
    self.fields = try fields.read("fields")
    keyword = try fields.read("keyword")
    visible = try fields.read("visible")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(plain, as: "plain")
    fields.write(constant, as: "constant")
    fields.write(first, as: "first")
    fields.write(second, as: "second")
    fields.write(third, as: "third")
    fields.write(a, as: "a")
    fields.write(b, as: "b")
    fields.write(c, as: "c")
    fields.writeIfPresent(optional, as: "optional")
    fields.writeIfPresent(spelledOut, as: "spelledOut")
    fields.writeIfPresent(qualified, as: "qualified")
    fields.writeIfPresent(implicit, as: "implicit")
    fields.write(negative, as: "negative")
    fields.write(isOn, as: "isOn")
    fields.write(list, as: "list")
    fields.write(named, as: "named")
    fields.writeIfPresent(nested, as: "nested")
    fields.write(set, as: "set")
    fields.write(afterSemicolon, as: "afterSemicolon")
    fields.write(raw, as: "raw")
    fields.write(quote, as: "quote")
    fields.write(text, as: "text")
    fields.write(interpolated, as: "interpolated")
    fields.write(computedOnce, as: "computedOnce")
    fields.write(chained, as: "chained")
    fields.write(summed, as: "summed")
    fields.write(conditional, as: "conditional")
    fields.write(generic, as: "generic")
    fields.write(small, as: "small")
    fields.write(ratio, as: "ratio")
    fields.write(data, as: "data")
    fields.write(date, as: "date")
    fields.write(id, as: "id")
    fields.writeIfPresent(url, as: "url")
    fields.write(mood, as: "mood")
    fields.write(moods, as: "moods")
    fields.write(inner, as: "inner")
    fields.write(inners, as: "inners")
    fields.write(watched, as: "watched")
    fields.write(`default`, as: "default")
    fields.write(self.fields, as: "fields")
    fields.write(keyword, as: "keyword")
    fields.write(visible, as: "visible")
  }
}

extension Properties.Inner: DirectCoding {
  init(from fields: inout FieldReader) throws {
    x = try fields.read("x")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(x, as: "x")
  }
}

extension Versioned: DirectCoding {
  init(from fields: inout FieldReader) throws {
    name = try fields.read("name")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(version, as: "version")
    fields.write(name, as: "name")
  }
}

extension Renamed: DirectCoding {
  init(from fields: inout FieldReader) throws {
    title = try fields.read("t\"\u{69}tle")
    note = try fields.readIfPresent("note")
    id = try fields.read(#"i"d"#)
  }

  func write(to fields: inout FieldWriter) {
    fields.write(title, as: "t\"\u{69}tle")
    fields.writeIfPresent(note, as: "note")
    fields.write(id, as: #"i"d"#)
  }
}

extension Plainly: DirectCoding {
  init(from fields: inout FieldReader) throws {
    b = try fields.readIfPresent("b")
    a = try fields.read("a")
  }

  func write(to fields: inout FieldWriter) {
    fields.writeIfPresent(b, as: "b")
    fields.write(a, as: "a")
  }
}

extension Extended: DirectCoding {
  init(from fields: inout FieldReader) throws {
    a = try fields.read("a")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(a, as: "a")
  }
}

extension Halves: DirectCoding {
  init(from fields: inout FieldReader) throws {
    a = try fields.read("a")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(a, as: "a")
  }
}

extension Page: DirectCoding {
  init(from fields: inout FieldReader) throws {
    items = try fields.read("items")
    note = try fields.read("note")
    next = try fields.readIfPresent("next")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(items, as: "items")
    fields.write(note, as: "note")
    fields.writeIfPresent(next, as: "next")
  }
}

extension Outer.Middle: DirectCoding {
  init(from fields: inout FieldReader) throws {
    value = try fields.read("value")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(value, as: "value")
  }
}

extension Outer.Middle.Innermost: DirectCoding {
  init(from fields: inout FieldReader) throws {
    value = try fields.read("value")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(value, as: "value")
  }
}

extension Outer.Middle.Added: DirectCoding {
  init(from fields: inout FieldReader) throws {
    value = try fields.read("value")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(value, as: "value")
  }
}

extension Outer.Holder.Held: DirectCoding {
  init(from fields: inout FieldReader) throws {
    value = try fields.readIfPresent("value")
  }

  func write(to fields: inout FieldWriter) {
    fields.writeIfPresent(value, as: "value")
  }
}

extension Uncoded.Coded: DirectCoding {
  init(from fields: inout FieldReader) throws {
    x = try fields.read("x")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(x, as: "x")
  }
}

extension Direct {
  init(from fields: inout FieldReader) throws {
    x = try fields.read("x")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(x, as: "x")
  }
}

@available(macOS 15, *)
nonisolated extension Attributed.Nested: DirectCoding {
  init(from fields: inout FieldReader) throws {
    x = try fields.read("x")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(x, as: "x")
  }
}

extension Public: DirectCoding {
  /// Reads the saved fields.
  public init(from fields: inout FieldReader) throws {
    x = try fields.read("x")
    y = try fields.readIfPresent("y")
  }

  /// Writes the fields to be saved.
  public func write(to fields: inout FieldWriter) {
    fields.write(x, as: "x")
    fields.writeIfPresent(y, as: "y")
  }
}

extension Packaged: DirectCoding {
  /// Reads the saved fields.
  package init(from fields: inout FieldReader) throws {
    x = try fields.read("x")
  }

  /// Writes the fields to be saved.
  package func write(to fields: inout FieldWriter) {
    fields.write(x, as: "x")
  }
}

extension Space.Explicit: DirectCoding {
  /// Reads the saved fields.
  public init(from fields: inout FieldReader) throws {
    x = try fields.read("x")
  }

  /// Writes the fields to be saved.
  public func write(to fields: inout FieldWriter) {
    fields.write(x, as: "x")
  }
}

extension Space.Implicit: DirectCoding {
  /// Reads the saved fields.
  public init(from fields: inout FieldReader) throws {
    x = try fields.read("x")
  }

  /// Writes the fields to be saved.
  public func write(to fields: inout FieldWriter) {
    fields.write(x, as: "x")
  }
}

extension Choice: DirectEnum {
  /// Reads the saved fields.
  public init?(case name: String, from fields: inout FieldReader) throws {
    switch name {
    case "none":
      self = .none
    case "one":
      self = .one(try fields.read("_0"))
    case "default":
      self = .`default`
    case "labels":
      self = .labels(
        a: try fields.read("a"),
        b: try fields.readIfPresent("b"),
        try fields.readIfPresent("_2"))
    case "last":
      self = .last(in: try fields.read("in"))
    case "fields":
      self = .fields(
        fields: try fields.read("fields"),
        name: try fields.read("name"),
        self: try fields.read("self"))
    case "nested":
      self = .nested(
        try fields.read("_0"),
        try fields.read("_1"))
    default: return nil
    }
  }

  /// Writes the fields to be saved.
  public func write(to fields: inout FieldWriter) {
    switch self {
    case .none:
      fields.writeCase("none")
    case .one(let value0):
      fields.writeCase("one")
      fields.write(value0, as: "_0")
    case .`default`:
      fields.writeCase("default")
    case .labels(let value0, let value1, let value2):
      fields.writeCase("labels")
      fields.write(value0, as: "a")
      fields.writeIfPresent(value1, as: "b")
      fields.writeIfPresent(value2, as: "_2")
    case .last(let value0):
      fields.writeCase("last")
      fields.write(value0, as: "in")
    case .fields(let value0, let value1, let value2):
      fields.writeCase("fields")
      fields.write(value0, as: "fields")
      fields.write(value1, as: "name")
      fields.write(value2, as: "self")
    case .nested(let value0, let value1):
      fields.writeCase("nested")
      fields.write(value0, as: "_0")
      fields.write(value1, as: "_1")
    }
  }
}

extension Choice.Number: DirectEnum {
  init?(case name: String, from fields: inout FieldReader) throws {
    switch name {
    case "zero":
      self = .zero
    default: return nil
    }
  }

  func write(to fields: inout FieldWriter) {
    switch self {
    case .zero:
      fields.writeCase("zero")
    }
  }
}

extension RenamedChoice: DirectEnum {
  init?(case name: String, from fields: inout FieldReader) throws {
    switch name {
    case "a":
      self = .a(try fields.read("_0"))
    case "\u{E9}\"":
      self = .b(
        x: try fields.readIfPresent("x"),
        try fields.read("_1"))
    default: return nil
    }
  }

  func write(to fields: inout FieldWriter) {
    switch self {
    case .a(let value0):
      fields.writeCase("a")
      fields.write(value0, as: "_0")
    case .b(let value0, let value1):
      fields.writeCase("\u{E9}\"")
      fields.writeIfPresent(value0, as: "x")
      fields.write(value1, as: "_1")
    }
  }
}

extension DirectChoice {
  init?(case name: String, from fields: inout FieldReader) throws {
    switch name {
    case "on":
      self = .on
    case "off":
      self = .off(at: try fields.read("at"))
    default: return nil
    }
  }

  func write(to fields: inout FieldWriter) {
    switch self {
    case .on:
      fields.writeCase("on")
    case .off(let value0):
      fields.writeCase("off")
      fields.write(value0, as: "at")
    }
  }
}
