import ArgumentParser

/// The key of a command, and the cache that it is in.
struct KeyArgument: ParsableArguments {
  // An array, because a single argument does not accept negative numbers.
  @Argument(parsing: .allUnrecognized, help: "The key, in the form that ls writes.")
  var key: [String]

  @Option(
    help: "The cache: its name, or # and its number; required if several caches have the key.")
  var cache: String?

  var text: String { key[0] }

  func validate() throws {
    // Only numbers are written with a leading dash.
    if let option = key.first(where: { $0.hasPrefix("-") && Int($0) == nil }) {
      throw ValidationError("Unknown option '\(option)'")
    }
    guard key.count == 1 else {
      throw ValidationError("the command takes one key, not \(key.count)")
    }
  }
}
