import Foundation

/// The terminal that a program writes to.
struct Terminal {
  /// The number of characters in a line; nil if the terminal does not tell.
  let width: Int?
  let showsColors: Bool

  /// The terminal of standard output; nil if that is a pipe or a file.
  static var ofOutput: Terminal? {
    guard isatty(1) != 0 else { return nil }
    var size = winsize()
    let isKnown = ioctl(1, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
    let environment = ProcessInfo.processInfo.environment
    return Terminal(
      width: isKnown ? Int(size.ws_col) : nil,
      showsColors: environment["NO_COLOR"] ?? "" == "" && environment["TERM"] != "dumb")
  }
}
