import Foundation

// Three machines share the price of apples: each is a process with a store of its own. What one has
// loaded, the others find on the server; what one changes, the others hear of. The server fails,
// and comes back.

// The program starts itself again for each machine: SharedCache DIRECTORY SERVER SOURCE.
let arguments = CommandLine.arguments.dropFirst().map { String($0) }
if arguments.count == 3 {
  // No machine waits for ever.
  alarm(120)
  let machine = try Machine(
    directory: URL(filePath: arguments[0]), server: arguments[1],
    source: URL(filePath: arguments[2]))
  while let command = readLine() {
    print(try await machine.answer(command))
    fflush(nil)
  }
  try machine.store.close()
  exit(0)
}

/// A child process, which answers each line with a line.
final class Child {
  private let process = Process()
  private let (input, output) = (Pipe(), Pipe())

  init(_ program: String, _ arguments: [String]) throws {
    process.executableURL = URL(filePath: program)
    process.arguments = arguments
    (process.standardInput, process.standardOutput) = (input, output)
    try process.run()
  }

  /// The next line; nil if the process has ended.
  func line() -> String? {
    var line = Data()
    while let byte = output.fileHandleForReading.readData(ofLength: 1).first {
      if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
      line.append(byte)
    }
    return nil
  }

  func ask(_ command: String) throws -> String {
    try input.fileHandleForWriting.write(contentsOf: Data("\(command)\n".utf8))
    return line() ?? "it has ended"
  }

  func end() throws {
    try input.fileHandleForWriting.close()
    process.waitUntilExit()
  }

  func kill() {
    Foundation.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }
}

let directory = FileManager.default.temporaryDirectory.appending(path: "shared-\(UUID())")
try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
let server = directory.appending(path: "s").path
let source = directory.appending(path: "price").path
try Data("10".utf8).write(to: URL(filePath: source))

/// Starts a server that keeps what it has on its disk.
func startServer() throws -> Child {
  let child = try Child(
    "/usr/bin/env",
    ["redis-server", "--port", "0", "--unixsocket", server, "--dir", directory.path]
      + ["--appendonly", "yes", "--appendfsync", "always"])
  while let line = child.line() {
    if line.contains("ready to accept connections at") { return child }
  }
  print("redis-server does not start")
  exit(1)
}

var redis = try startServer()
let names = ["Ada", "Ben", "Cy"]
var machines: [String: Child] = [:]
for name in names {
  machines[name] = try Child(
    CommandLine.arguments[0], [directory.appending(path: name).path, server, source])
}

let tell = { (name: String, command: String) in
  try machines[name]?.ask(command) ?? "no machine"
}

for name in names { _ = try tell(name, "connected") }

print("What one machine has loaded, the others find:")
for name in ["Ada", "Ben", "Cy"] { print("  \(name) reads: \(try tell(name, "read"))") }
print("  Ben reads again: \(try tell("Ben", "read"))")

print("What one machine saves, the others hear of:")
print("  Ada saves 12: \(try tell("Ada", "save 12"))")
print("  Ben reads until it is 12: \(try tell("Ben", "wait 12"))")
print("  Ben reads again: \(try tell("Ben", "read"))")

print("The server is killed:")
redis.kill()
for name in names { _ = try tell(name, "degraded") }
print("  Ben reads: \(try tell("Ben", "read"))")
print("  Ada saves 15: \(try tell("Ada", "save 15"))")
print("  Ada reads: \(try tell("Ada", "read"))")
print("  Ben reads: \(try tell("Ben", "read"))")

print("The server is back, with the 12 that it had:")
redis = try startServer()
for name in names { _ = try tell(name, "connected") }
print("  Ada reads, which removes the 12 first: \(try tell("Ada", "read"))")
print("  Ben reads until it is 15: \(try tell("Ben", "wait 15"))")
print("  Cy reads: \(try tell("Cy", "read"))")

for machine in machines.values { try machine.end() }
redis.kill()
try FileManager.default.removeItem(at: directory)
