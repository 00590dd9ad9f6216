package import Larder

extension StoreError {
  /// Whether a write on a failing disk may throw this error.
  package var isWriteFailure: Bool {
    switch self {
    case .diskFull, .io, .writesDisabled: true
    default: false
    }
  }
}
