/// An argument of a command.
package enum RESPArgument: Sendable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
  case text(String)
  case bytes([UInt8])
  case number(Int)

  package init(stringLiteral text: String) { self = .text(text) }
  package init(integerLiteral number: Int) { self = .number(number) }
}

/// Commands as a server reads them: arrays of bulk strings.
///
/// An array literal is one command.
package struct RESPCommands: Sendable, ExpressibleByArrayLiteral {
  package private(set) var bytes: [UInt8] = []
  /// Where each command begins.
  private var starts: [Int] = []

  /// The number of commands.
  package var count: Int { starts.count }

  /// The same commands, each behind `ASKING`: a node then answers for a slot that it does not have
  /// yet.
  package var asking: RESPCommands {
    var commands = RESPCommands()
    for (start, end) in zip(starts, starts.dropFirst() + [bytes.count]) {
      commands.append("ASKING")
      commands.starts.append(commands.bytes.count)
      commands.bytes += bytes[start..<end]
    }
    return commands
  }

  package init() {}

  package init(arrayLiteral arguments: RESPArgument...) { append(arguments) }

  /// Appends a command: its name, and what follows it.
  package mutating func append(_ arguments: RESPArgument...) {
    append(arguments)
  }

  /// Appends a command: its name, and what follows it.
  package mutating func append(_ arguments: [RESPArgument]) {
    starts.append(bytes.count)
    append(header: "*", arguments.count)
    for argument in arguments {
      switch argument {
      case .text(let text): append(text.utf8)
      case .bytes(let bytes): append(bytes)
      case .number(let number): append(String(number).utf8)
      }
    }
  }

  private mutating func append(_ argument: some Collection<UInt8>) {
    append(header: "$", argument.count)
    bytes.append(contentsOf: argument)
    endLine()
  }

  private mutating func append(header type: Unicode.Scalar, _ count: Int) {
    bytes.append(UInt8(ascii: type))
    bytes.append(contentsOf: String(count).utf8)
    endLine()
  }

  private mutating func endLine() {
    bytes.append(UInt8(ascii: "\r"))
    bytes.append(UInt8(ascii: "\n"))
  }
}
