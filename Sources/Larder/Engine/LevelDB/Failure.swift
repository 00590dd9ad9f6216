import CLarderLevelDB

/// Throws if `status` is a failure, and frees it.
///
/// Every call into `CLarderLevelDB` that can fail passes its status here, so none is leaked.
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
