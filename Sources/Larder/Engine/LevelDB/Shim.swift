import CLarder

/// Throws if `status` is a failure, and frees it.
///
/// Every call into `CLarder` that can fail passes its status here, so none is leaked.
func check(_ status: OpaquePointer?) throws(StoreError) {
  guard let status else { return }
  defer { clarder_status_free(status) }
  let message = String(cString: clarder_status_message(status))
  switch clarder_status_code(status) {
  case .corruption: throw .corrupt(message)
  case .io_error: throw .io(message)
  case .no_space: throw .diskFull
  case .locked: throw .locked(pid: nil)
  // Neither is about an argument of the caller: LevelDB reports files that use a comparator or a
  // feature that it does not have.
  case .not_supported, .invalid_argument: throw .incompatible(message)
  }
}

extension clarder_slice {
  init(_ bytes: UnsafeRawBufferPointer) {
    self.init(bytes: bytes.baseAddress, count: bytes.count)
  }
}

extension UnsafeRawBufferPointer {
  init(_ slice: clarder_slice) {
    self.init(start: slice.bytes, count: slice.count)
  }
}

extension EngineRange {
  /// Lends the bounds for as long as the call; without an upper bound the second one is nil.
  func withSlices<R>(_ body: (clarder_slice, UnsafePointer<clarder_slice>?) -> R) -> R {
    lower.withUnsafeBytes { lower in
      guard let upper else { return body(clarder_slice(lower), nil) }
      return upper.withUnsafeBytes { upper in
        withUnsafePointer(to: clarder_slice(upper)) { body(clarder_slice(lower), $0) }
      }
    }
  }
}

/// Adds a row to the next write of a LevelDB database: a number, 8 bytes, little-endian.
func stagePut(of number: UInt64, under key: [UInt8], in database: OpaquePointer) {
  withUnsafeBytes(of: number.littleEndian) { number in
    key.withUnsafeBytes { clarder_stage_put(database, clarder_slice($0), clarder_slice(number)) }
  }
}
