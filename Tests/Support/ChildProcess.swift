import CTestSupport

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// A program started by a test, with a pipe to its input and one from its output.
///
/// It is killed and waited for when this value is destroyed, and killed when this process ends.
package struct ChildProcess: ~Copyable {
  /// The error for a program that could not be started.
  package struct StartFailure: Error {
    package let message: String
  }

  private let process: pid_t
  private let input: Int32
  private var output: Int32?
  private let watch: ChildWatch
  private var unread: [UInt8] = []
  private var isRunning = true

  /// Starts a program that was built beside the tests.
  package init(_ program: String, _ arguments: [String]) throws {
    guard let path = ChildProcess.path(of: program) else {
      throw StartFailure(message: "\(program) is not in the directory of the tests")
    }
    let (process, input, output) = try ChildProcess.start([path] + arguments)
    (self.process, self.input, self.output) = (process, input, output)
    watch = ChildWatch(process, ([program] + arguments).joined(separator: " "))
  }

  deinit {
    ChildProcess.end(process, watch, if: isRunning)
    close(input)
    if let output { close(output) }
  }

  /// The process identifier.
  package var id: Int32 { process }

  /// The next complete line of its output; nil after the last one.
  package mutating func readLine() -> String? {
    while true {
      if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
        defer { unread.removeSubrange(...end) }
        return String(decoding: unread[..<end], as: UTF8.self)
      }
      guard let output else { return nil }
      var chunk = [UInt8](repeating: 0, count: 4096)
      let count = read(output, &chunk, chunk.count)
      guard count > 0 else { return nil }
      unread += chunk[..<count]
    }
  }

  /// Reads no more of its output, however much it writes.
  ///
  /// The pipe is closed; if it stayed open, the program would stop once the pipe is full. It must
  /// ignore `SIGPIPE`.
  package mutating func ignoreOutput() {
    if let output { close(output) }
    output = nil
  }

  /// Writes to its input, which must still be open.
  package func send(_ text: String) {
    let bytes = Array(text.utf8)
    _ = bytes.withUnsafeBytes { write(input, $0.baseAddress, $0.count) }
  }

  /// Kills it without a chance to clean up, and returns when it has ended.
  ///
  /// Its earlier output can still be read.
  package mutating func kill() {
    ChildProcess.end(process, watch, if: isRunning)
    isRunning = false
  }

  private static func end(_ process: pid_t, _ watch: ChildWatch, if isRunning: Bool) {
    guard isRunning else { return }
    #if canImport(Darwin)
      _ = Darwin.kill(process, SIGKILL)
    #else
      _ = Glibc.kill(process, SIGKILL)
    #endif
    watch.end()
    var status: Int32 = 0
    waitpid(process, &status, 0)
  }

  /// Starts a program without a watch, and returns its process identifier and its pipes.
  static func start(_ words: [String]) throws -> (pid_t, input: Int32, output: Int32) {
    let (childInput, input) = try pipe()
    let (output, childOutput) = try pipe()
    defer {
      close(childInput)
      close(childOutput)
    }
    #if canImport(Darwin)
      var actions: posix_spawn_file_actions_t?
      var attributes: posix_spawnattr_t?
    #else
      var actions = posix_spawn_file_actions_t()
      var attributes = posix_spawnattr_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    posix_spawn_file_actions_adddup2(&actions, childInput, 0)
    posix_spawn_file_actions_adddup2(&actions, childOutput, 1)
    // No signal is blocked in the child. It would inherit that a thread of tests blocks all.
    var blocked = sigset_t()
    sigemptyset(&blocked)
    posix_spawnattr_setsigmask(&attributes, &blocked)
    var flags = Int16(POSIX_SPAWN_SETSIGMASK)
    // The child inherits no other descriptors. A socket that this process closes would stay open in
    // the child, and the other end of its connection would wait for an end that does not come.
    #if canImport(Darwin)
      posix_spawn_file_actions_addinherit_np(&actions, 2)
      flags |= Int16(POSIX_SPAWN_CLOEXEC_DEFAULT)
    #else
      close_descriptors(&actions, 3)
    #endif
    posix_spawnattr_setflags(&attributes, flags)

    var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var process: pid_t = 0
    let failure = posix_spawn(&process, words[0], &actions, &attributes, &arguments, environ)
    guard failure == 0 else {
      throw StartFailure(message: "\(words[0]): \(String(cString: strerror(failure)))")
    }
    return (process, input, output)
  }

  private static func pipe() throws -> (reading: Int32, writing: Int32) {
    var ends: [Int32] = [-1, -1]
    #if canImport(Darwin)
      let failed = Darwin.pipe(&ends) != 0
    #else
      let failed = Glibc.pipe(&ends) != 0
    #endif
    guard !failed else {
      throw StartFailure(message: "no pipe: \(String(cString: strerror(errno)))")
    }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends[0], ends[1])
  }

  /// The path of a program, absolute or in the directory of the tests; nil if it was not built.
  ///
  /// The path of the test bundle is among the arguments of this process.
  package static func path(of program: String) -> String? {
    if program.hasPrefix("/") { return program }
    for argument in CommandLine.arguments where argument.contains(".xctest") {
      var parts = argument.split(separator: "/", omittingEmptySubsequences: false)
      while let _ = parts.popLast() {
        let path = (parts + [Substring(program)]).joined(separator: "/")
        if access(path, X_OK) == 0 { return path }
      }
    }
    return nil
  }
}

/// Whether the tests run as the superuser, to whom permissions do not apply.
package var isSuperuser: Bool { geteuid() == 0 }

/// Changes the owner of a file or directory, which only the superuser can.
package func give(_ path: String, toUser user: UInt32) {
  _ = chown(path, user, user)
}
