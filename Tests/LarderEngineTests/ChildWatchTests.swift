import Foundation
import LarderTestSupport
import Testing

/// What a test run starts ends with it.
@Suite struct ChildWatchTests {
  @Test("A child that waits for nothing ends when its parent is killed.")
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

    // It gets the lock when the child is gone.
    let limit = TimeLimit(seconds: 60) { fatalError("a child outlives its parent") }
    #expect(flock(file, LOCK_EX) == 0)
    limit.lift()
  }
}
