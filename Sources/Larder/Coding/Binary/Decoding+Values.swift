import Foundation

/// Whether a type is a list, by type; the dynamic cast takes longer than decoding a small value.
private let listTypes = Lock<[ObjectIdentifier: Bool]>([:])

/// A list type that is decoded without an unkeyed container.
protocol WireList {
  /// Reads the list that `value` holds, whose decoder the caller keeps.
  static func read(from value: ValueReader) throws -> Self
}

extension WireList {
  /// Reads the list into memory that is not initialized.
  fileprivate static func read(from value: ValueReader, to place: UnsafeMutableRawPointer) throws {
    unsafe place.assumingMemoryBound(to: Self.self).initialize(to: try read(from: value))
  }
}

/// How the values of a type are decoded.
enum DecodableForm: CodingForm {
  case string, url, uuid, date, data
  // Lists of common types, and other lists.
  case integers, doubles, strings
  case list(any WireList.Type)
  /// By the type's part.
  case part(UnsafePointer<any StreamPart>)
  /// By the type's own `init(from:)`.
  case itself

  init(of type: Any.Type, parts: (any StreamParts.Type)?) {
    if type == String.self {
      self = .string
    } else if type == URL.self {
      self = .url
    } else if type == UUID.self {
      self = .uuid
    } else if type == Date.self {
      self = .date
    } else if type == Data.self {
      self = .data
    } else if let part = parts?.part(of: type) {
      self = .part(part)
    } else if type == [Int].self {
      self = .integers
    } else if type == [Double].self {
      self = .doubles
    } else if type == [String].self {
      self = .strings
    } else {
      self = Self.listType(type).map(DecodableForm.list) ?? .itself
    }
  }

  /// Returns `type` as a list type; nil if it is not one.
  private static func listType(_ type: Any.Type) -> (any WireList.Type)? {
    let id = ObjectIdentifier(type)
    let known = listTypes.withLock { $0[id] }
    if known == false { return nil }
    let list = type as? any WireList.Type
    if known == nil {
      let isList = list != nil
      listTypes.withLock { $0[id] = isList }
    }
    return list
  }

  @inline(__always)
  var isScalar: Bool {
    switch self {
    case .string, .url, .uuid, .date, .data: true
    default: false
    }
  }

  /// The form of a value at `place`: a URL with a base is stored as an object.
  @inline(__always)
  func of(_ place: WirePlace) -> DecodableForm {
    if case .url = self, place.kind == .object || place.kind == .map { return .itself }
    return self
  }
}

// MARK: - Decoding

extension ValueReader {
  @inline(__always)
  func form(of type: Any.Type) -> DecodableForm { payload.pointee.forms.form(of: type) }

  @inline(__always)
  func form(of type: Any.Type, at place: WirePlace) -> DecodableForm { form(of: type).of(place) }

  /// Decodes this value with its own decoder, through `Codable` even if it `isItself` a part.
  func decodeSelf<T: Decodable>(isItself: Bool = false) throws -> T {
    if !isItself, case .part(let part) = form(of: T.self) {
      do { return try read(place, depth: depth, by: part) } catch {
        // `Codable` decodes it, and reports what is wrong with the bytes, if anything.
      }
      return try decodeSelf(isItself: true)
    }
    let form =
      isItself ? DecodableForm(of: T.self, parts: nil).of(place) : form(of: T.self, at: place)
    if form.isScalar || isNumbers(form, place) {
      return try decode(form, place, .root, depth: depth)
    }
    if case .itself = form { return try T(from: decoder) }
    let decoder = decoder
    return try withExtendedLifetime(decoder) { try list(form) }
  }

  /// Decodes this value for a type that has its decoder, and may use that for another container.
  func decode<T: Decodable>() throws -> T {
    try decode(form(of: T.self, at: place), place, .root, depth: depth)
  }

  /// Decodes a value within this one, which ``PayloadState/knownEnd(of:depth:)`` finds afterwards
  /// if it was read to its end.
  @inline(__always)
  func decode<T: Decodable>(
    _ form: DecodableForm, _ place: WirePlace, below name: ValueState.Name
  ) throws -> T {
    try decode(form.of(place), place, name, depth: depth + 1)
  }

  @inline(__always)
  func decode<T: Decodable>(
    _ form: DecodableForm, _ place: WirePlace, _ name: ValueState.Name, depth: Int
  ) throws -> T {
    if case .itself = form { return try T(from: child(place, name, depth: depth)) }
    return try decodeKnown(form, place, name, depth: depth)
  }

  private func decodeKnown<T: Decodable>(
    _ form: DecodableForm, _ place: WirePlace, _ name: ValueState.Name, depth: Int
  ) throws -> T {
    if case .part(let part) = form {
      do { return try read(place, depth: depth, by: part) } catch {
        // `Codable` decodes it, and reports what is wrong with the bytes, if anything.
      }
      return try decode(DecodableForm(of: T.self, parts: nil).of(place), place, name, depth: depth)
    }
    if form.isScalar {
      do throws(Fault) {
        var end: Int?
        defer { if let end { payload.pointee.finish(place.offset, depth: depth, end: end) } }
        return try scalar(form, place, end: &end)
      } catch {
        throw self.error(error, T.self, below: name)
      }
    }
    if isNumbers(form, place) {
      if case .integers = form { return moved(try numbers(place, name, depth) as [Int]) }
      return moved(try numbers(place, name, depth) as [Double])
    }
    let child = child(place, name, depth: depth)
    return try withExtendedLifetime(child) { try child.value.list(form) }
  }

  /// Reads a value of a type with a scalar form, which must be `T`.
  ///
  /// `end` is set to where the value ends, once it is read.
  @inline(__always)
  func scalar<T>(_ form: DecodableForm, _ place: WirePlace, end: inout Int?) throws(Fault) -> T {
    switch form {
    case .url: return moved(try scalar(place, &end) as URL)
    case .uuid: return moved(try scalar(place, &end) as UUID)
    case .date: return moved(try scalar(place, &end) as Date)
    case .data: return moved(try scalar(place, &end) as Data)
    default: return moved(try scalar(place, &end) as String)
    }
  }

  @inline(__always)
  private func scalar<S: WireScalar>(_ place: WirePlace, _ end: inout Int?) throws(Fault) -> S {
    var offset = 0
    let value: S = try read(place, end: &offset)
    end = offset
    return value
  }

  // MARK: - Lists

  /// Whether a value is a list of numbers whose encoding equals their layout in memory.
  private func isNumbers(_ form: DecodableForm, _ place: WirePlace) -> Bool {
    switch form {
    case .integers: payload.pointee.isNumberList(Int.self, place)
    case .doubles: payload.pointee.isNumberList(Double.self, place)
    default: false
    }
  }

  private func numbers<Number>(
    _ place: WirePlace, _ name: ValueState.Name, _ depth: Int
  ) throws -> [Number] {
    do throws(Fault) {
      try payload.pointee.checkDepth(depth)
      var offset = place.offset
      let numbers: [Number] = try payload.pointee.valueBytes.numbers(at: &offset)
      payload.pointee.finish(place.offset, depth: depth, end: offset)
      return numbers
    } catch {
      throw self.error(error, [Number].self, below: name)
    }
  }

  /// Reads this value as a list, whose type must be `T`.
  private func list<T: Decodable>(_ form: DecodableForm) throws -> T {
    switch form {
    case .integers: return moved(try [Int].read(from: self))
    case .doubles: return moved(try [Double].read(from: self))
    case .strings: return moved(try [String].read(from: self))
    case .list(let type):
      return try withUnsafeTemporaryAllocation(of: T.self, capacity: 1) { memory in
        guard let place = memory.baseAddress else { preconditionFailure("memory for a value") }
        try type.read(from: self, to: UnsafeMutableRawPointer(place))
        return place.move()
      }
    default: return try T(from: decoder)
    }
  }
}
