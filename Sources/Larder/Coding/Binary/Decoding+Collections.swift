import Foundation

// Collections that are decoded without a container.

extension Set: WireList where Element: Decodable {
  static func read(from value: ValueReader) throws -> Set {
    // A set of generic elements takes five times as long to fill.
    if Element.self == String.self {
      return same(Set<String>(try [String].read(from: value)))
    }
    return Set(try [Element].read(from: value))
  }
}

extension Dictionary: WireList where Key == String, Value: Decodable {
  static func read(from map: ValueReader) throws -> [String: Value] {
    // An object is a map, too, for a type that reads it as one.
    guard map.place.kind == .map else { return try Self(from: map.decoder) }
    if Value.self == String.self { return same(try map.entries() as [String: String]) }
    if Value.self == Int.self { return same(try map.entries() as [String: Int]) }
    if Value.self == Double.self { return same(try map.entries() as [String: Double]) }
    return try map.entries()
  }
}

extension ValueReader {
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
  private let map: ValueReader
  private var left: Int
  private var offset: Int

  init(_ map: ValueReader) throws {
    self.map = map
    offset = map.place.offset
    do throws(Fault) {
      try map.payload.pointee.checkDepth(map.depth)
      count = try map.payload.pointee.valueBytes.count(at: &offset, minimum: 2)
    } catch {
      throw map.error(error, [String: Any].self)
    }
    left = count
  }

  /// The name of the next entry; nil after the last one.
  mutating func nextName() throws -> String? {
    guard left > 0 else {
      map.finish(end: offset)
      return nil
    }
    left -= 1
    do throws(Fault) {
      return try map.payload.pointee.valueBytes.text(at: &offset)
    } catch {
      throw map.error(error, [String: Any].self)
    }
  }

  /// The value of the entry whose name was read.
  mutating func value<T: Decodable>(_ name: String) throws -> T {
    let key = ValueState.Name.key(PathKey(stringValue: name))
    let place: WirePlace
    do throws(Fault) {
      place = try map.payload.pointee.tagged(at: offset)
      if T.self == Int.self { return same(try map.read(place, end: &offset) as Int) }
      if T.self == Double.self { return same(try map.read(place, end: &offset) as Double) }
      if T.self == Bool.self { return same(try map.read(place, end: &offset) as Bool) }
    } catch {
      throw map.error(error, T.self, below: key)
    }
    let value: T = try map.decode(map.form(of: T.self), place, below: key)
    do throws(Fault) {
      offset = try map.payload.pointee.end(of: place, depth: map.depth + 1)
    } catch {
      throw map.error(error, T.self, below: key)
    }
    return value
  }
}
