/// Writes and reads values of one type without `Codable`, within values that are coded through it.
///
/// The value at an address, and the generic parameter, are always of the part's own type.
package protocol StreamPart: AnyObject, Sendable {
  /// Writes the value at `place`, tagged; false, with nothing written, if it must be encoded
  /// through `Codable`.
  func write(at place: UnsafeRawPointer, within stream: StreamWriter) -> Bool

  /// Reads the value at `place`, whose nesting level is `depth`, and sets `end` to where it ends.
  ///
  /// Any error sends the value through `Codable`, which decides whether the payload is valid.
  func read<T: Decodable>(
    _ place: WirePlace, within payload: Payload, depth: Int, end: inout Int
  ) throws -> T
}

/// Knows the types that have a ``StreamPart``.
package protocol StreamParts {
  /// The part for a type; nil if the type has none. The memory is never freed.
  static func part(of type: Any.Type) -> UnsafePointer<any StreamPart>?
}

// MARK: - Within a stream

extension StreamWriter {
  /// Writes a value by its type's part, or else with its type's `encode(to:)`.
  @inline(never)
  func encode<T: Encodable>(_ value: T, by part: UnsafePointer<any StreamPart>) throws {
    if try withUnsafePointer(to: value, { try write(at: $0, by: part) }) { return }
    try encode(value, TypeForm(of: T.self, parts: nil))
  }

  private func write(
    at place: UnsafeRawPointer, by part: UnsafePointer<any StreamPart>
  ) throws -> Bool {
    guard !state.pointee.refusesParts else { return false }
    // The type has no encoder, so whatever it uses belongs to a value around it.
    let outer = state.pointee.active
    state.pointee.active = StreamState.Active(
      level: state.pointee.frameCount, nesting: outer.nesting)
    let isWritten = part.pointee.write(at: place, within: self)
    guard !state.pointee.isAbandoned else { throw StreamAbandoned() }
    state.pointee.active = outer
    // Values within the value would be tried again and again.
    if !isWritten { state.pointee.refusesParts = true }
    return isWritten
  }

  /// The number of containers around the value that is written next.
  var depth: Int { Binary.maximumDepth - state.pointee.maximumFrames + state.pointee.frameCount }
}

// MARK: - Within a payload

/// An internal error: a value with a part is decoded through `Codable`.
private struct PartRefused: Error {}

extension ValueReader {
  /// Reads a value by its type's part.
  ///
  /// After an error the value, and all others in the payload, must be decoded through `Codable`:
  /// parts within each other would read malformed bytes again and again.
  func read<T: Decodable>(
    _ place: WirePlace, depth: Int, by part: UnsafePointer<any StreamPart>
  ) throws -> T {
    guard !payload.pointee.refusesParts, !state.pointee.isLoose,
      let owner = payload.pointee.owner
    else { throw PartRefused() }
    do {
      var end = 0
      let value: T = try part.pointee.read(
        place, within: owner.takeUnretainedValue(), depth: depth, end: &end)
      if place.kind != .null { payload.pointee.finish(place.offset, depth: depth, end: end) }
      return value
    } catch {
      payload.pointee.refusesParts = true
      throw error
    }
  }
}
