import Foundation

/// Checks how deep the lists and objects of a payload are nested, before Foundation decodes it.
package enum DepthScan {
  /// Throws a `DecodingError` if the arrays and objects of a JSON text are nested more than 128
  /// deep.
  ///
  /// Other errors in the text are left to the decoder.
  ///
  /// - Complexity: O(n) in the bytes, up to the first bracket that is too deep.
  package static func checkJSON(_ bytes: UnsafeRawBufferPointer) throws {
    // Each level takes two bytes, so a shorter text is shallow enough or incomplete.
    guard bytes.count > 2 * Binary.maximumDepth else { return }
    var depth = 0
    var offset = 0
    while offset < bytes.count {
      switch bytes[offset] {
      case UInt8(ascii: "\""):
        offset = endOfString(in: bytes, from: offset + 1)
        continue
      case UInt8(ascii: "["), UInt8(ascii: "{"):
        depth += 1
        guard depth <= Binary.maximumDepth else {
          let fault = Fault.malformed("nested too deeply")
          throw DecodingError.dataCorrupted(
            DecodingError.Context(codingPath: [], debugDescription: fault.description))
        }
      case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
      default: break
      }
      offset += 1
    }
  }

  /// Finds the end of a string, behind its closing quotation mark; its text begins at `start`.
  private static func endOfString(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
    guard let base = bytes.baseAddress else { return bytes.count }
    var offset = start
    while offset < bytes.count {
      // Unsafe: the search is limited to the bytes from `offset` to the end.
      guard
        let mark = unsafe memchr(base + offset, Int32(UInt8(ascii: "\"")), bytes.count - offset)
      else { break }
      offset = UnsafeRawPointer(mark) - base
      // The mark is escaped if it follows an odd number of backslashes.
      var first = offset
      while first > start, bytes[first - 1] == UInt8(ascii: "\\") { first -= 1 }
      offset += 1
      if (offset - 1 - first).isMultiple(of: 2) { return offset }
    }
    return bytes.count
  }

  /// Throws a `DecodingError` if the bytes are not a binary property list, or its arrays and
  /// dictionaries are nested more than 128 deep.
  ///
  /// Property lists in other formats are rejected, because no coder writes them.
  ///
  /// - Complexity: O(n) in the objects and their references.
  static func checkPropertyList(_ bytes: UnsafeRawBufferPointer) throws {
    do throws(Fault) {
      var objects = try PropertyListObjects(bytes)
      _ = try objects.height(of: objects.top, within: 0)
    } catch {
      throw DecodingError.dataCorrupted(
        DecodingError.Context(codingPath: [], debugDescription: error.description))
    }
  }
}

/// The objects of a binary property list, which refer to each other by number.
///
/// A list ends with a trailer: the size of an offset, the size of a reference, the number of
/// objects, the number of the top object, and the offset of the table of object offsets.
private struct PropertyListObjects {
  private static let trailerBytes = 32

  private let bytes: UnsafeRawBufferPointer
  private let offsetBytes: Int
  private let referenceBytes: Int
  private let table: Int
  let top: Int
  /// For each object, its height plus 1; 0 until it is known.
  private var heights: [UInt8]

  init(_ bytes: UnsafeRawBufferPointer) throws(Fault) {
    let trailer = bytes.count - Self.trailerBytes
    guard trailer > 0, bytes.starts(with: "bplist0".utf8) else {
      throw .malformed("not a binary property list")
    }
    self.bytes = bytes
    offsetBytes = Int(bytes[trailer + 6])
    referenceBytes = Int(bytes[trailer + 7])
    let count = try Self.integer(in: bytes, at: trailer + 8, size: 8)
    top = try Self.integer(in: bytes, at: trailer + 16, size: 8)
    table = try Self.integer(in: bytes, at: trailer + 24, size: 8)
    guard (1...8).contains(offsetBytes), (1...8).contains(referenceBytes), table <= trailer,
      count <= (trailer - table) / offsetBytes
    else { throw .malformed("an invalid trailer") }
    heights = Array(repeating: 0, count: count)
  }

  /// Returns the number of levels of arrays and dictionaries in an object, including itself.
  ///
  /// Throws if there are too many levels together with the `depth` levels around the object. An
  /// object with several references to it is visited once; one that contains itself is too deep.
  mutating func height(of object: Int, within depth: Int) throws(Fault) -> Int {
    guard heights.indices.contains(object) else { throw .malformed("an unknown object") }
    if heights[object] == 0 {
      var height = 0
      if let references = try references(of: object) {
        guard depth < Binary.maximumDepth else { throw .malformed("nested too deeply") }
        for index in 0..<references.count {
          let next = try Self.integer(
            in: bytes, at: references.start + index * referenceBytes, size: referenceBytes)
          height = max(height, try self.height(of: next, within: depth + 1))
        }
        height += 1
      }
      heights[object] = UInt8(height + 1)
    }
    let height = Int(heights[object]) - 1
    guard depth + height <= Binary.maximumDepth else { throw .malformed("nested too deeply") }
    return height
  }

  /// Finds the references in an array, set or dictionary; nil for an object of another kind.
  private func references(of object: Int) throws(Fault) -> (start: Int, count: Int)? {
    var offset = try Self.integer(in: bytes, at: table + object * offsetBytes, size: offsetBytes)
    let marker = try Self.integer(in: bytes, at: offset, size: 1)
    guard (0xA...0xD).contains(marker >> 4) else { return nil }
    offset += 1
    var count = marker & 0xF
    if count == 0xF {
      // The count follows as an integer object: a marker with the logarithm of its size, a number.
      let size = 1 << (try Self.integer(in: bytes, at: offset, size: 1) & 0xF)
      count = try Self.integer(in: bytes, at: offset + 1, size: size)
      offset += 1 + size
    }
    // A dictionary has a reference for each key and for each value.
    let each = marker >> 4 == 0xD ? 2 : 1
    guard count <= (bytes.count - offset) / (each * referenceBytes) else {
      throw .malformed("more references than bytes")
    }
    return (offset, each * count)
  }

  /// Reads a big-endian integer of `size` bytes.
  private static func integer(
    in bytes: UnsafeRawBufferPointer, at offset: Int, size: Int
  ) throws(Fault) -> Int {
    guard size <= 8, offset >= 0, offset <= bytes.count - size else {
      throw .malformed("an offset past the end")
    }
    let value = bytes[offset..<(offset + size)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    guard let value = Int(exactly: value) else { throw .malformed("a number that is out of range") }
    return value
  }
}
