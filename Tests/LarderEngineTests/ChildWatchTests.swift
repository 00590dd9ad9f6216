import Foundation
import LarderTestSupport
import Testing

/// Every process that a test run starts ends with the run.
@Suite struct ChildWatchTests {
  @Test("A child process ends when its parent is killed.")
  func childrenEndWithTheirParent() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("locked")
    let bundle = try #require(CommandLine.arguments.first { $0.contains(".xctest") })
    var parent = try ChildProcess("CrashWorker", ["parent", path, bundle])
    try #require(parent.readLine() == "ready")
    let file = open(path, O_RDWR | O_CLOEXEC)
    defer { close(file) }
    #expect(flock(file, LOCK_EX | LOCK_NB) != 0, "the child has the lock")

    parent.kill()

    // The lock is free once the child is gone.
    let limit = TimeLimit(seconds: 60) { fatalError("a child process outlived its parent") }
    #expect(flock(file, LOCK_EX) == 0)
    limit.lift()
  }

  @Test("A child process inherits no descriptor but its input and its outputs.")
  func descriptors() throws {
    let file = open("/dev/null", O_RDONLY)
    defer { close(file) }
    var child = try ChildProcess("/bin/ls", ["/dev/fd"])
    var descriptors: [Int] = []
    while let line = child.readLine() { descriptors.append(try #require(Int(line))) }
    // ls itself has opened the directory.
    #expect(descriptors.count == 4 && descriptors.allSatisfy { $0 <= 3 }, "\(descriptors)")
  }
}
