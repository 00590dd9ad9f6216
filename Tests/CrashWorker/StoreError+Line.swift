import Larder

extension StoreError {
  /// The case with its message, for a test to read.
  var line: String {
    switch self {
    case .io(let message): "io(\(message))"
    case .writesDisabled(let cause): "writesDisabled(\(cause))"
    case .readOnly(let cause): "readOnly(\(cause))"
    case .corrupt(_, _, let place): "corrupt(\(place ?? ""))"
    case .incompatible(let message): "incompatible(\(message))"
    case .invalidArgument(let message): "invalidArgument(\(message))"
    case .closed: "closed"
    case .diskFull: "diskFull"
    default: "\(self)"
    }
  }
}
