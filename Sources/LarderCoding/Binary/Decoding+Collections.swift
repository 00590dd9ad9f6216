import Foundation

// Collections that are decoded without a container.

extension Set: WireList where Element: Decodable {
  static func read(from decoder: ValueDecoder) throws -> Set {
    // A set of generic elements takes five times as long to fill.
    if Element.self == String.self {
      return same(Set<String>(try [String].read(from: decoder)))
    }
    return Set(try [Element].read(from: decoder))
  }
}

extension Dictionary: WireList where Key == String, Value: Decodable {
  static func read(from decoder: ValueDecoder) throws -> [String: Value] {
    // An object is a map, too, for a type that reads it as one.
    guard decoder.place.kind == .map else { return try Self(from: decoder) }
    if Value.self == String.self { return same(try decoder.entries() as [String: String]) }
    if Value.self == Int.self { return same(try decoder.entries() as [String: Int]) }
    if Value.self == Double.self { return same(try decoder.entries() as [String: Double]) }
    return try decoder.entries()
  }
}

extension ValueDecoder {
  /// Decodes the entries of a map.
  fileprivate func entries<Value: Decodable>() throws -> [String: Value] {
    var entries = try Entries(self)
    var values: [String: Value] = [:]
    // A hostile count must not reserve much more memory than the payload has bytes.
    values.reserveCapacity(min(entries.count, 1024))
    while let name = try entries.nextName() {
      guard values.updateValue(try entries.value(name), forKey: name) == nil else {
        throw error(.malformed("a duplicate entry name"), [String: Any].self)
      }
    }
    return values
  }
}

/// Reads the entries of a map, in order.
private struct Entries {
  let count: Int
  private let decoder: ValueDecoder
  private var left: Int
  private var offset: Int

  init(_ decoder: ValueDecoder) throws {
    self.decoder = decoder
    offset = decoder.place.offset
    do throws(Fault) {
      try decoder.payload.checkDepth(decoder.depth)
      count = try decoder.payload.count(at: &offset, minimum: 2)
    } catch {
      throw decoder.error(error, [String: Any].self)
    }
    left = count
  }

  /// The name of the next entry; nil after the last one.
  mutating func nextName() throws -> String? {
    guard left > 0 else {
      decoder.payload.finish(decoder.place.offset, depth: decoder.depth, end: offset)
      return nil
    }
    left -= 1
    do throws(Fault) {
      return try decoder.payload.valueBytes.text(at: &offset)
    } catch {
      throw decoder.error(error, [String: Any].self)
    }
  }

  /// The value of the entry whose name was read.
  mutating func value<T: Decodable>(_ name: String) throws -> T {
    let payload = decoder.payload
    let key = ValueDecoder.Name.key(PathKey(stringValue: name))
    let place: Place
    do throws(Fault) {
      place = try payload.tagged(at: offset)
      if T.self == Int.self { return same(try Int.read(payload, place, end: &offset)) }
      if T.self == Double.self { return same(try Double.read(payload, place, end: &offset)) }
      if T.self == Bool.self { return same(try Bool.read(payload, place, end: &offset)) }
    } catch {
      throw decoder.error(error, T.self, below: key)
    }
    var end: Int?
    let value: T = try decoder.decode(place, name: key, end: &end)
    if let end {
      offset = end
      return value
    }
    do throws(Fault) {
      offset = try payload.end(of: place, depth: decoder.depth + 1)
    } catch {
      throw decoder.error(error, T.self, below: key)
    }
    return value
  }
}
