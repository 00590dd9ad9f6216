import Foundation
import Synchronization

/// A field name or element index, for the coding paths of errors.
struct PathKey: CodingKey {
  let stringValue: String
  let intValue: Int?

  init(stringValue: String) {
    self.stringValue = stringValue
    intValue = nil
  }

  init(intValue: Int) {
    stringValue = "Index \(intValue)"
    self.intValue = intValue
  }
}

/// The decoder of one value, which owns the value's state.
///
/// A payload hands its decoders out again, for later values within as many others. One that a type
/// has kept belongs to the type from then on, together with those of the values around it and with
/// the payload.
final class ValueDecoder: Decoder {
  let value: ValueReader
  /// The decoder of the value around this one; only a decoder that was kept keeps it.
  var parent: ValueDecoder?
  /// The payload; only a decoder that was kept keeps it.
  var payload: Payload?

  init(_ payload: UnsafeMutablePointer<PayloadState>, level: Int) {
    let state = UnsafeMutablePointer<ValueState>.allocate(capacity: 1)
    state.initialize(to: ValueState(payload, level: level))
    value = ValueReader(state: state)
    state.pointee.decoder = .passUnretained(self)
  }

  /// Makes a value's state and its decoder, which the caller releases.
  static func makeState(
    _ payload: UnsafeMutablePointer<PayloadState>, level: Int
  ) -> UnsafeMutablePointer<ValueState> {
    let decoder = ValueDecoder(payload, level: level)
    // Unsafe: `PayloadState` releases it.
    _ = unsafe Unmanaged.passRetained(decoder)
    return decoder.value.state
  }

  deinit {
    value.state.deinitialize(count: 1)
    value.state.deallocate()
  }

  var place: WirePlace { value.place }

  var codingPath: [any CodingKey] { value.codingPath }

  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(
    keyedBy type: Key.Type
  ) throws -> KeyedDecodingContainer<Key> {
    try value.enterFields()
    return value.fields()
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer { try Elements(self) }

  func singleValueContainer() throws -> any SingleValueDecodingContainer { self }
}

extension ValueDecoder: SingleValueDecodingContainer {
  func decodeNil() -> Bool { place.kind == .null }

  func scalar<S: WireScalar>() throws -> S { try value.scalar() }

  func decode<T: Decodable>(_ type: T.Type) throws -> T { try value.decode() }
}

// MARK: - Keyed containers

/// What a keyed container sees of its value.
final class FieldsLink {
  // Unsafe: the value's decoder is kept by the payload, or by ``owner``.
  let value: ValueReader
  /// The value's decoder, if the payload does not keep it for this container.
  var owner: ValueDecoder?

  init(_ value: ValueReader) { self.value = value }
}

extension ValueDecoder {
  /// Whether keyed containers can be kept, which depends on the standard library.
  static let keepsContainers: Bool = {
    enum Key: CodingKey {}
    let payload = Payload(keepsContainers: false)
    let decoder = ValueDecoder(payload.state, level: 0)
    return withExtendedLifetime((payload, decoder)) {
      Original(KeyedDecodingContainer(KeyedFields<Key>(link: FieldsLink(decoder.value))))
        .isOneReference
    }
  }()
}

extension ValueReader {
  /// The container for the fields, which were entered.
  @inline(__always)
  func fields<Key: CodingKey>() -> KeyedDecodingContainer<Key> {
    let place = state.pointee.container(ObjectIdentifier(Key.self))
    guard let place else { return newFields() }
    // Unsafe: the containers of a type of keys are of one type.
    return Self.copy(
      unsafe place.assumingMemoryBound(
        to: InPlace<Original<KeyedDecodingContainer<Key>>>.self
      ).pointee)
  }

  /// Returns a copy of a container without retaining its original.
  @inline(__always)
  private static func copy<Key: CodingKey>(
    _ original: borrowing InPlace<Original<KeyedDecodingContainer<Key>>>
  ) -> KeyedDecodingContainer<Key> {
    original.value.copy()
  }

  @inline(never)
  private func newFields<Key: CodingKey>() -> KeyedDecodingContainer<Key> {
    let link = FieldsLink(self)
    let container = KeyedDecodingContainer(KeyedFields<Key>(link: link))
    guard payload.pointee.keepsContainers, !state.pointee.isLoose else {
      link.owner = decoder
      return container
    }
    let original = Original(container)
    // Unsafe: a container is a reference to one object, as `keepsContainers` says.
    let shared = unsafe UnsafeRawPointer(original.place).load(as: UnsafeRawPointer.self)
    state.pointee.keep(
      ValueState.Container(
        original: .passRetained(original), shared: shared, link: .passUnretained(link),
        keyType: ObjectIdentifier(Key.self)))
    return container
  }
}

// MARK: - Decoding a payload

extension Binary {
  /// Decodes a value from a whole payload.
  ///
  /// Values of types that `parts` knows are read without `Codable`.
  ///
  /// - Throws: A `DecodingError`, or an error from the type's own `init(from:)`.
  package static func decode<V: Decodable>(
    _ type: V.Type, from bytes: RawSpan, parts: (any StreamParts.Type)? = nil
  ) throws -> V {
    try bytes.withUnsafeBytes { bytes in
      let payload = Payload.take()
      defer { Payload.giveBack(payload) }
      payload.pointee.forms.use(parts)
      return try decode(bytes, with: payload)
    }
  }

  /// Decodes a value from the bytes of a whole payload.
  static func decode<V: Decodable>(
    _ bytes: UnsafeRawBufferPointer, with payload: UnsafeMutablePointer<PayloadState>
  ) throws -> V {
    let place: WirePlace
    do throws(Fault) {
      try payload.pointee.begin(bytes)
      place = try payload.pointee.tagged(at: headBytes)
    } catch {
      throw DecodingError.dataCorrupted(
        DecodingError.Context(codingPath: [], debugDescription: error.description))
    }
    return try decode(payload, place, depth: 1)
  }

  /// Decodes the value at `place`, through `Codable` even if it `isItself` a part.
  static func decode<V: Decodable>(
    _ payload: Payload, _ place: WirePlace, depth: Int, isItself: Bool
  ) throws -> V {
    try withExtendedLifetime(payload) {
      try decode(payload.state, place, depth: depth, isItself: isItself)
    }
  }

  private static func decode<V: Decodable>(
    _ payload: UnsafeMutablePointer<PayloadState>, _ place: WirePlace, depth: Int,
    isItself: Bool = false
  ) throws -> V {
    let level = payload.pointee.usedValues
    defer { payload.pointee.endValues(from: level) }
    let state =
      payload.pointee.value(level: level) ?? payload.pointee.newValue(of: payload, level: level)
    state.pointee.begin(place, depth: depth, parent: nil, .root)
    return try ValueReader(state: state).decodeSelf(isItself: isItself)
  }
}

// MARK: - Reuse

extension Payload {
  /// The state of a payload that is not in use, with the decoders of earlier values.
  // Unsafe: the address is exchanged atomically, so one call at a time has it.
  nonisolated(unsafe) private static let spare = Atomic<UnsafeMutablePointer<PayloadState>?>(nil)

  /// Returns a payload, which the caller gives back.
  static func take() -> UnsafeMutablePointer<PayloadState> {
    if let payload = spare.exchange(nil, ordering: .acquiring) { return payload }
    return Unmanaged.passRetained(Payload()).takeUnretainedValue().state
  }

  /// Keeps a payload for later calls; or copies its bytes, if a value kept its decoder.
  static func giveBack(_ payload: UnsafeMutablePointer<PayloadState>) {
    guard end(payload) else { return }
    if let other = spare.exchange(payload, ordering: .acquiringAndReleasing) {
      other.pointee.owner?.release()
    }
  }

  /// Ends the use of the caller's bytes; false, and the payload is released, if it is in use.
  static func end(_ payload: UnsafeMutablePointer<PayloadState>) -> Bool {
    guard let owner = payload.pointee.owner else { return false }
    if isOnlyReference(owner.toOpaque()) {
      payload.pointee.valueBytes = .none
      return true
    }
    owner.takeUnretainedValue().keepBytes()
    owner.release()
    return false
  }
}
