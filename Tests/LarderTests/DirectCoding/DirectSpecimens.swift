import Foundation
import LarderTestSupport

@testable import Larder

/// A field of each type that is coded directly, and fields that are coded through `Codable`.
struct Everything: DirectCoding, Equatable {
  enum Mood: String, Codable { case glad, sad }

  struct Inner: Codable, Equatable {
    var a: Int
    var b: [String]?
  }

  var bool = true
  var int = -7
  var double = 1.5
  var string = "text"
  var data = Data([1, 2])
  var date = Date(timeIntervalSinceReferenceDate: 0.1)
  var url = Everything.url("https://example.com/a?b=c")
  var uuid = UUID()
  var noBool: Bool?
  var noInt: Int?
  var noDouble: Double?
  var noString: String?
  var noData: Data?
  var noDate: Date?
  var noURL: URL?
  var noUUID: UUID?
  var small: Int8 = 3
  var mood = Mood.glad
  var inner = Inner(a: 1, b: ["x"])
  var noInner: Inner?
  var numbers = [1, 2, 3]
  var names = ["a": Inner(a: 2)]

  static func url(_ text: String) -> URL {
    guard let url = URL(string: text) else { preconditionFailure("\(text) is no URL") }
    return url
  }

  /// With a value in each optional field.
  static var full: Everything {
    var value = Everything()
    (value.noBool, value.noInt, value.noDouble, value.noString) = (false, 0, .nan, "")
    (value.noData, value.noDate, value.noURL) = (Data(), .distantPast, url("b"))
    (value.noUUID, value.noInner, value.mood) = (UUID(), Inner(a: 9, b: []), .sad)
    value.noDouble = -0.5
    return value
  }
}

extension Everything {
  init(from fields: inout FieldReader) throws {
    bool = try fields.read("bool")
    int = try fields.read("int")
    double = try fields.read("double")
    string = try fields.read("string")
    data = try fields.read("data")
    date = try fields.read("date")
    url = try fields.read("url")
    uuid = try fields.read("uuid")
    noBool = try fields.readIfPresent("noBool")
    noInt = try fields.readIfPresent("noInt")
    noDouble = try fields.readIfPresent("noDouble")
    noString = try fields.readIfPresent("noString")
    noData = try fields.readIfPresent("noData")
    noDate = try fields.readIfPresent("noDate")
    noURL = try fields.readIfPresent("noURL")
    noUUID = try fields.readIfPresent("noUUID")
    small = try fields.read("small")
    mood = try fields.read("mood")
    inner = try fields.read("inner")
    noInner = try fields.readIfPresent("noInner")
    numbers = try fields.read("numbers")
    names = try fields.read("names")
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
    fields.writeIfPresent(noBool, as: "noBool")
    fields.writeIfPresent(noInt, as: "noInt")
    fields.writeIfPresent(noDouble, as: "noDouble")
    fields.writeIfPresent(noString, as: "noString")
    fields.writeIfPresent(noData, as: "noData")
    fields.writeIfPresent(noDate, as: "noDate")
    fields.writeIfPresent(noURL, as: "noURL")
    fields.writeIfPresent(noUUID, as: "noUUID")
    fields.write(small, as: "small")
    fields.write(mood, as: "mood")
    fields.write(inner, as: "inner")
    fields.writeIfPresent(noInner, as: "noInner")
    fields.write(numbers, as: "numbers")
    fields.write(names, as: "names")
  }
}

/// A song in several versions of an app, all of one schema version.
enum Song {
  struct First: DirectCoding, Equatable {
    var id: Int
    var title: String
    var length: Double

    init(id: Int, title: String, length: Double) {
      (self.id, self.title, self.length) = (id, title, length)
    }

    init(from fields: inout FieldReader) throws {
      id = try fields.read("id")
      title = try fields.read("title")
      length = try fields.read("length")
    }

    func write(to fields: inout FieldWriter) {
      fields.write(id, as: "id")
      fields.write(title, as: "title")
      fields.write(length, as: "length")
    }
  }

  /// Two more fields, one before and one after.
  struct Added: DirectCoding, Equatable {
    var album: String?
    var id: Int
    var title: String
    var length: Double
    var year: Int?

    init(from fields: inout FieldReader) throws {
      album = try fields.readIfPresent("album")
      id = try fields.read("id")
      title = try fields.read("title")
      length = try fields.read("length")
      year = try fields.readIfPresent("year")
    }

    func write(to fields: inout FieldWriter) {
      fields.writeIfPresent(album, as: "album")
      fields.write(id, as: "id")
      fields.write(title, as: "title")
      fields.write(length, as: "length")
      fields.writeIfPresent(year, as: "year")
    }
  }

  /// Without the field in the middle.
  struct Removed: DirectCoding, Equatable {
    var id: Int
    var length: Double

    init(from fields: inout FieldReader) throws {
      id = try fields.read("id")
      length = try fields.read("length")
    }

    func write(to fields: inout FieldWriter) {
      fields.write(id, as: "id")
      fields.write(length, as: "length")
    }
  }

  /// In another order, and without the last field.
  struct Moved: DirectCoding, Equatable {
    var title: String
    var id: Int

    init(from fields: inout FieldReader) throws {
      title = try fields.read("title")
      id = try fields.read("id")
    }

    func write(to fields: inout FieldWriter) {
      fields.write(title, as: "title")
      fields.write(id, as: "id")
    }
  }

  /// With wider types: optionals, and a number type that holds the old numbers.
  struct Widened: DirectCoding, Equatable {
    var id: Double
    var title: String?
    var length: Double?

    init(from fields: inout FieldReader) throws {
      id = try fields.read("id")
      title = try fields.readIfPresent("title")
      length = try fields.readIfPresent("length")
    }

    func write(to fields: inout FieldWriter) {
      fields.write(id, as: "id")
      fields.writeIfPresent(title, as: "title")
      fields.writeIfPresent(length, as: "length")
    }
  }

  /// With a required field that older versions lack.
  struct Needy: DirectCoding, Equatable {
    var id: Int
    var composer: String

    init(from fields: inout FieldReader) throws {
      id = try fields.read("id")
      composer = try fields.read("composer")
    }

    func write(to fields: inout FieldWriter) {
      fields.write(id, as: "id")
      fields.write(composer, as: "composer")
    }
  }
}

/// A type that breaks the rules: it leaves out a field whose value is 0.
struct Wayward: DirectCoding, Equatable {
  var a: Int
  var b: Int

  init(a: Int, b: Int) { (self.a, self.b) = (a, b) }

  init(from fields: inout FieldReader) throws {
    a = try fields.readIfPresent("a") ?? 0
    b = try fields.read("b")
  }

  func write(to fields: inout FieldWriter) {
    if a != 0 { fields.write(a, as: "a") }
    fields.write(b, as: "b")
  }
}

/// A type that breaks the rules: its fields vary, and the last one may be left out.
struct Fickle: DirectCoding, Equatable {
  var x: Int?
  var y: Int?
  var z: Int?

  init(x: Int? = nil, y: Int? = nil, z: Int? = nil) { (self.x, self.y, self.z) = (x, y, z) }

  init(from fields: inout FieldReader) throws {
    x = try fields.readIfPresent("x")
    y = try fields.readIfPresent("y")
    z = try fields.readIfPresent("z")
  }

  func write(to fields: inout FieldWriter) {
    if let x { fields.write(x, as: "x") }
    if let y { fields.write(y, as: "y") }
    if let z { fields.write(z, as: "z") }
  }
}

/// A type without a shape: it has two fields with one name.
struct Doubled: DirectCoding, Equatable {
  var a = 1

  init() {}
  init(from fields: inout FieldReader) throws { a = try fields.read("a") }

  func write(to fields: inout FieldWriter) {
    fields.write(a, as: "a")
    fields.write(a, as: "a")
  }
}

/// The example in StorageFormat.md.
struct Person: DirectCoding, Equatable {
  var name: String
  var age: Int?

  init(name: String, age: Int?) { (self.name, self.age) = (name, age) }

  init(from fields: inout FieldReader) throws {
    name = try fields.read("name")
    age = try fields.readIfPresent("age")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(name, as: "name")
    fields.writeIfPresent(age, as: "age")
  }
}

/// Lists of numbers, which are copied without a decoder.
struct NumberLists: DirectCoding, Equatable {
  var integers = [1, -2, .max]
  var doubles = [0.5, -.infinity]
  var last = 7

  init(from fields: inout FieldReader) throws {
    integers = try fields.read("integers")
    doubles = try fields.read("doubles")
    last = try fields.read("last")
  }

  init(_ integers: [Int] = [1, -2, .max], _ doubles: [Double] = [0.5, -.infinity]) {
    (self.integers, self.doubles) = (integers, doubles)
  }

  func write(to fields: inout FieldWriter) {
    fields.write(integers, as: "integers")
    fields.write(doubles, as: "doubles")
    fields.write(last, as: "last")
  }
}

/// An older version of ``NumberLists``, with narrower numbers.
struct NarrowLists: Codable {
  var integers: [Int16] = [3, -4]
  var doubles: [Float] = [1.5]
  var last = 7
}
