// Generated from Models.swift by `swift package generate-direct-coding`. Do not edit.

import Larder

extension Models.Scalars: DirectCoding {
  init(from fields: inout FieldReader) throws {
    bool = try fields.read("bool")
    int = try fields.read("int")
    double = try fields.read("double")
    string = try fields.read("string")
    data = try fields.read("data")
    date = try fields.read("date")
    url = try fields.read("url")
    uuid = try fields.read("uuid")
    maybeBool = try fields.readIfPresent("maybeBool")
    maybeInt = try fields.readIfPresent("maybeInt")
    maybeDouble = try fields.readIfPresent("maybeDouble")
    maybeString = try fields.readIfPresent("maybeString")
    maybeData = try fields.readIfPresent("maybeData")
    maybeDate = try fields.readIfPresent("maybeDate")
    maybeURL = try fields.readIfPresent("maybeURL")
    maybeUUID = try fields.readIfPresent("maybeUUID")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(bool, as: "bool")
    fields.write(int, as: "int")
    fields.write(double, as: "double")
    fields.write(string, as: "string")
    fields.write(data, as: "data")
    fields.write(date, as: "date")
    fields.write(url, as: "url")
    fields.write(uuid, as: "uuid")
    fields.writeIfPresent(maybeBool, as: "maybeBool")
    fields.writeIfPresent(maybeInt, as: "maybeInt")
    fields.writeIfPresent(maybeDouble, as: "maybeDouble")
    fields.writeIfPresent(maybeString, as: "maybeString")
    fields.writeIfPresent(maybeData, as: "maybeData")
    fields.writeIfPresent(maybeDate, as: "maybeDate")
    fields.writeIfPresent(maybeURL, as: "maybeURL")
    fields.writeIfPresent(maybeUUID, as: "maybeUUID")
  }
}

extension Models.Widths: DirectCoding {
  init(from fields: inout FieldReader) throws {
    int8 = try fields.read("int8")
    uint16 = try fields.readIfPresent("uint16")
    int32 = try fields.read("int32")
    uint64 = try fields.read("uint64")
    float = try fields.readIfPresent("float")
    integers = try fields.read("integers")
    doubles = try fields.read("doubles")
    maybeIntegers = try fields.readIfPresent("maybeIntegers")
    bytes = try fields.read("bytes")
    floats = try fields.read("floats")
    booleans = try fields.read("booleans")
    last = try fields.read("last")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(int8, as: "int8")
    fields.writeIfPresent(uint16, as: "uint16")
    fields.write(int32, as: "int32")
    fields.write(uint64, as: "uint64")
    fields.writeIfPresent(float, as: "float")
    fields.write(integers, as: "integers")
    fields.write(doubles, as: "doubles")
    fields.writeIfPresent(maybeIntegers, as: "maybeIntegers")
    fields.write(bytes, as: "bytes")
    fields.write(floats, as: "floats")
    fields.write(booleans, as: "booleans")
    fields.write(last, as: "last")
  }
}

extension Models.Leaf: DirectCoding {
  init(from fields: inout FieldReader) throws {
    id = try fields.read("id")
    name = try fields.readIfPresent("name")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(id, as: "id")
    fields.writeIfPresent(name, as: "name")
  }
}

extension Models.LaterLeaf: DirectCoding {
  init(from fields: inout FieldReader) throws {
    name = try fields.readIfPresent("name")
    id = try fields.read("id")
    added = try fields.readIfPresent("added")
  }

  func write(to fields: inout FieldWriter) {
    fields.writeIfPresent(name, as: "name")
    fields.write(id, as: "id")
    fields.writeIfPresent(added, as: "added")
  }
}

extension Models.Nest: DirectCoding {
  init(from fields: inout FieldReader) throws {
    leaf = try fields.read("leaf")
    maybe = try fields.readIfPresent("maybe")
    leaves = try fields.read("leaves")
    maybeLeaves = try fields.readIfPresent("maybeLeaves")
    named = try fields.read("named")
    maybeNamed = try fields.readIfPresent("maybeNamed")
    scalars = try fields.read("scalars")
    after = try fields.read("after")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(leaf, as: "leaf")
    fields.writeIfPresent(maybe, as: "maybe")
    fields.write(leaves, as: "leaves")
    fields.writeIfPresent(maybeLeaves, as: "maybeLeaves")
    fields.write(named, as: "named")
    fields.writeIfPresent(maybeNamed, as: "maybeNamed")
    fields.write(scalars, as: "scalars")
    fields.write(after, as: "after")
  }
}

extension Models.LaterNest: DirectCoding {
  init(from fields: inout FieldReader) throws {
    after = try fields.readIfPresent("after")
    maybeNamed = try fields.readIfPresent("maybeNamed")
    leaves = try fields.read("leaves")
    leaf = try fields.readIfPresent("leaf")
  }

  func write(to fields: inout FieldWriter) {
    fields.writeIfPresent(after, as: "after")
    fields.writeIfPresent(maybeNamed, as: "maybeNamed")
    fields.write(leaves, as: "leaves")
    fields.writeIfPresent(leaf, as: "leaf")
  }
}

extension Models.Collections: DirectCoding {
  init(from fields: inout FieldReader) throws {
    matrix = try fields.read("matrix")
    holes = try fields.read("holes")
    numbered = try fields.read("numbered")
    lists = try fields.read("lists")
    texts = try fields.read("texts")
    numbers = try fields.read("numbers")
    leaves = try fields.read("leaves")
    strings = try fields.read("strings")
    blobs = try fields.read("blobs")
    dates = try fields.read("dates")
    identifiers = try fields.read("identifiers")
    links = try fields.read("links")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(matrix, as: "matrix")
    fields.write(holes, as: "holes")
    fields.write(numbered, as: "numbered")
    fields.write(lists, as: "lists")
    fields.write(texts, as: "texts")
    fields.write(numbers, as: "numbers")
    fields.write(leaves, as: "leaves")
    fields.write(strings, as: "strings")
    fields.write(blobs, as: "blobs")
    fields.write(dates, as: "dates")
    fields.write(identifiers, as: "identifiers")
    fields.write(links, as: "links")
  }
}

extension Models.Place: DirectCoding {
  init(from fields: inout FieldReader) throws {
    x = try fields.read("x")
    y = try fields.readIfPresent("y")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(x, as: "x")
    fields.writeIfPresent(y, as: "y")
  }
}

extension Models.Mixed: DirectCoding {
  init(from fields: inout FieldReader) throws {
    kind = try fields.read("kind")
    shape = try fields.read("shape")
    shapes = try fields.read("shapes")
    plain = try fields.read("plain")
    plains = try fields.readIfPresent("plains")
    leaf = try fields.read("leaf")
    large = try fields.readIfPresent("large")
    decimal = try fields.read("decimal")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(kind, as: "kind")
    fields.write(shape, as: "shape")
    fields.write(shapes, as: "shapes")
    fields.write(plain, as: "plain")
    fields.writeIfPresent(plains, as: "plains")
    fields.write(leaf, as: "leaf")
    fields.writeIfPresent(large, as: "large")
    fields.write(decimal, as: "decimal")
  }
}

extension Models.Tree: DirectCoding {
  init(from fields: inout FieldReader) throws {
    value = try fields.read("value")
    children = try fields.read("children")
    named = try fields.readIfPresent("named")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(value, as: "value")
    fields.write(children, as: "children")
    fields.writeIfPresent(named, as: "named")
  }
}

extension Models.Pair: DirectCoding {
  init(from fields: inout FieldReader) throws {
    first = try fields.read("first")
    second = try fields.readIfPresent("second")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(first, as: "first")
    fields.writeIfPresent(second, as: "second")
  }
}

extension Models.Named: DirectCoding {
  init(from fields: inout FieldReader) throws {
    b = try fields.read("\u{E9}t\u{E9} \u{1F600}")
    a = try fields.read("")
    c = try fields.readIfPresent(
      "a name that is longer than sixteen bytes, as names of fields seldom are")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(b, as: "\u{E9}t\u{E9} \u{1F600}")
    fields.write(a, as: "")
    fields.writeIfPresent(
      c, as: "a name that is longer than sixteen bytes, as names of fields seldom are")
  }
}

extension Models.Event: DirectEnum {
  init?(case name: String, from fields: inout FieldReader) throws {
    switch name {
    case "opened":
      self = .opened(
        url: try fields.read("url"),
        at: try fields.readIfPresent("at"),
        try fields.read("_2"))
    case "note":
      self = .note(try fields.read("_0"))
    case "closed":
      self = .closed
    case "measured":
      self = .measured(
        try fields.read("_0"),
        id: try fields.readIfPresent("id"),
        try fields.read("_2"),
        isFinal: try fields.read("isFinal"))
    case "moved":
      self = .moved(
        try fields.readIfPresent("_0"),
        leaves: try fields.read("leaves"),
        blob: try fields.read("blob"))
    case "replaced":
      self = .replaced(
        try fields.read("_0"),
        by: try fields.readIfPresent("by"))
    case "several":
      self = .several(
        try fields.read("_0"),
        named: try fields.read("named"))
    case "drawn":
      self = .drawn(
        try fields.read("_0"),
        as: try fields.read("as"),
        holes: try fields.read("holes"))
    case "default":
      self = .`default`(
        fields: try fields.read("fields"),
        in: try fields.read("in"))
    default: return nil
    }
  }

  func write(to fields: inout FieldWriter) {
    switch self {
    case .opened(let value0, let value1, let value2):
      fields.writeCase("opened")
      fields.write(value0, as: "url")
      fields.writeIfPresent(value1, as: "at")
      fields.write(value2, as: "_2")
    case .note(let value0):
      fields.writeCase("note")
      fields.write(value0, as: "_0")
    case .closed:
      fields.writeCase("closed")
    case .measured(let value0, let value1, let value2, let value3):
      fields.writeCase("measured")
      fields.write(value0, as: "_0")
      fields.writeIfPresent(value1, as: "id")
      fields.write(value2, as: "_2")
      fields.write(value3, as: "isFinal")
    case .moved(let value0, let value1, let value2):
      fields.writeCase("moved")
      fields.writeIfPresent(value0, as: "_0")
      fields.write(value1, as: "leaves")
      fields.write(value2, as: "blob")
    case .replaced(let value0, let value1):
      fields.writeCase("replaced")
      fields.write(value0, as: "_0")
      fields.writeIfPresent(value1, as: "by")
    case .several(let value0, let value1):
      fields.writeCase("several")
      fields.write(value0, as: "_0")
      fields.write(value1, as: "named")
    case .drawn(let value0, let value1, let value2):
      fields.writeCase("drawn")
      fields.write(value0, as: "_0")
      fields.write(value1, as: "as")
      fields.write(value2, as: "holes")
    case .`default`(let value0, let value1):
      fields.writeCase("default")
      fields.write(value0, as: "fields")
      fields.write(value1, as: "in")
    }
  }
}

extension Models.Step: DirectEnum {
  init?(case name: String, from fields: inout FieldReader) throws {
    switch name {
    case "none":
      self = .none
    case "labels":
      self = .labels(
        name: try fields.read("name"),
        count: try fields.read("count"),
        at: try fields.readIfPresent("at"))
    case "plain":
      self = .plain(
        try fields.read("_0"),
        try fields.read("_1"))
    case "plainToo":
      self = .plainToo(
        try fields.read("_0"),
        try fields.read("_1"))
    case "mixed":
      self = .mixed(
        try fields.read("_0"),
        url: try fields.readIfPresent("url"),
        try fields.read("_2"),
        names: try fields.read("names"))
    case "leaf":
      self = .leaf(
        try fields.read("_0"),
        try fields.readIfPresent("_1"))
    case "kind":
      self = .kind(
        try fields.read("_0"),
        try fields.readIfPresent("_1"))
    case "then":
      self = .then(
        try fields.read("_0"),
        try fields.readIfPresent("_1"))
    case "all":
      self = .all(
        try fields.read("_0"),
        try fields.read("_1"),
        named: try fields.read("named"))
    case "either":
      self = .either(try fields.read("_0"))
    default: return nil
    }
  }

  func write(to fields: inout FieldWriter) {
    switch self {
    case .none:
      fields.writeCase("none")
    case .labels(let value0, let value1, let value2):
      fields.writeCase("labels")
      fields.write(value0, as: "name")
      fields.write(value1, as: "count")
      fields.writeIfPresent(value2, as: "at")
    case .plain(let value0, let value1):
      fields.writeCase("plain")
      fields.write(value0, as: "_0")
      fields.write(value1, as: "_1")
    case .plainToo(let value0, let value1):
      fields.writeCase("plainToo")
      fields.write(value0, as: "_0")
      fields.write(value1, as: "_1")
    case .mixed(let value0, let value1, let value2, let value3):
      fields.writeCase("mixed")
      fields.write(value0, as: "_0")
      fields.writeIfPresent(value1, as: "url")
      fields.write(value2, as: "_2")
      fields.write(value3, as: "names")
    case .leaf(let value0, let value1):
      fields.writeCase("leaf")
      fields.write(value0, as: "_0")
      fields.writeIfPresent(value1, as: "_1")
    case .kind(let value0, let value1):
      fields.writeCase("kind")
      fields.write(value0, as: "_0")
      fields.writeIfPresent(value1, as: "_1")
    case .then(let value0, let value1):
      fields.writeCase("then")
      fields.write(value0, as: "_0")
      fields.writeIfPresent(value1, as: "_1")
    case .all(let value0, let value1, let value2):
      fields.writeCase("all")
      fields.write(value0, as: "_0")
      fields.write(value1, as: "_1")
      fields.write(value2, as: "named")
    case .either(let value0):
      fields.writeCase("either")
      fields.write(value0, as: "_0")
    }
  }
}

extension Models.LaterEvent: DirectEnum {
  init?(case name: String, from fields: inout FieldReader) throws {
    switch name {
    case "note":
      self = .note(
        try fields.readIfPresent("_0"),
        author: try fields.readIfPresent("author"))
    case "closed":
      self = .closed(at: try fields.readIfPresent("at"))
    case "measured":
      self = .measured(isFinal: try fields.read("isFinal"))
    case "moved":
      self = .moved(
        leaves: try fields.readIfPresent("leaves"),
        try fields.readIfPresent("_1"))
    case "forgotten":
      self = .forgotten
    default: return nil
    }
  }

  func write(to fields: inout FieldWriter) {
    switch self {
    case .note(let value0, let value1):
      fields.writeCase("note")
      fields.writeIfPresent(value0, as: "_0")
      fields.writeIfPresent(value1, as: "author")
    case .closed(let value0):
      fields.writeCase("closed")
      fields.writeIfPresent(value0, as: "at")
    case .measured(let value0):
      fields.writeCase("measured")
      fields.write(value0, as: "isFinal")
    case .moved(let value0, let value1):
      fields.writeCase("moved")
      fields.writeIfPresent(value0, as: "leaves")
      fields.writeIfPresent(value1, as: "_1")
    case .forgotten:
      fields.writeCase("forgotten")
    }
  }
}

extension Models.Either: DirectEnum {
  init?(case name: String, from fields: inout FieldReader) throws {
    switch name {
    case "first":
      self = .first(try fields.read("_0"))
    case "second":
      self = .second(try fields.read("_0"))
    case "both":
      self = .both(
        try fields.readIfPresent("_0"),
        try fields.read("_1"))
    default: return nil
    }
  }

  func write(to fields: inout FieldWriter) {
    switch self {
    case .first(let value0):
      fields.writeCase("first")
      fields.write(value0, as: "_0")
    case .second(let value0):
      fields.writeCase("second")
      fields.write(value0, as: "_0")
    case .both(let value0, let value1):
      fields.writeCase("both")
      fields.writeIfPresent(value0, as: "_0")
      fields.write(value1, as: "_1")
    }
  }
}

extension Models.Log: DirectCoding {
  init(from fields: inout FieldReader) throws {
    first = try fields.read("first")
    last = try fields.readIfPresent("last")
    events = try fields.read("events")
    named = try fields.read("named")
    groups = try fields.readIfPresent("groups")
    choice = try fields.read("choice")
    after = try fields.read("after")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(first, as: "first")
    fields.writeIfPresent(last, as: "last")
    fields.write(events, as: "events")
    fields.write(named, as: "named")
    fields.writeIfPresent(groups, as: "groups")
    fields.write(choice, as: "choice")
    fields.write(after, as: "after")
  }
}

extension Models.LaterLog: DirectCoding {
  init(from fields: inout FieldReader) throws {
    after = try fields.read("after")
    first = try fields.readIfPresent("first")
    events = try fields.read("events")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(after, as: "after")
    fields.writeIfPresent(first, as: "first")
    fields.write(events, as: "events")
  }
}
