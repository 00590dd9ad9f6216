import Testing

/// The code has no call that hides an error, reads a clock, sleeps, prints or widens the API.
@Suite struct BannedCallTests {
  private let tree = SourceTree.repository

  @Test("No error is trapped or dropped.")
  func droppedErrors() {
    BannedCalls.droppedErrors.expectHolds(in: tree.files(under: "Sources"))
  }

  @Test("Libraries do not print.")
  func printing() {
    let libraries = tree.files(under: "Sources").filter { file in
      !Layers.executables.contains(file.target ?? "")
    }
    BannedCalls.printing.expectHolds(in: libraries)
  }

  @Test("The API has no hidden entry points.")
  func sideDoors() {
    BannedCalls.sideDoors.expectHolds(in: tree.files(under: "Sources"))
  }

  @Test("The manifests work for a versioned dependency.")
  func manifests() {
    let manifests = tree.code.filter { $0.path.hasSuffix("Package.swift") }
    BannedCalls.unsafeSettings.expectHolds(in: manifests)
  }

  @Test("The sources neither sleep nor yield.")
  func sleepingSources() {
    let others = tree.files(under: "Sources").filter { !BannedCalls.timerFiles.contains($0.path) }
    BannedCalls.sleeping.expectHolds(in: others)
    BannedCalls.yielding.expectHolds(in: others)
  }

  @Test("The library has one kind of lock.")
  func locks() {
    BannedCalls.locks.expectHolds(in: tree.files(under: "Sources/Larder"))
  }

  @Test("Only the system clock reads the time.")
  func clocks() {
    let others = tree.files(under: "Sources").filter { !BannedCalls.clockFiles.contains($0.path) }
    BannedCalls.clocks.expectHolds(in: others)
  }

  @Test("Tests neither sleep nor are disabled.")
  func sleepingTests() {
    let tests = tree.files(under: "Tests").filter { !BannedCalls.timerFiles.contains($0.path) }
    BannedCalls.sleeping.expectHolds(in: tests)
    BannedCalls.skipping.expectHolds(in: tree.files(under: "Tests"))
  }

  @Test("Tests do not wait without a limit.")
  func waitingTests() {
    let tests = tree.files(under: "Tests").filter { !BannedCalls.waitingFiles.contains($0.path) }
    BannedCalls.waiting.expectHolds(in: tests)
  }

  // MARK: - The rules detect violations

  @Test(
    "A rule detects a bad line.",
    arguments: [
      (BannedCalls.droppedErrors, "let a = try! f()"), (BannedCalls.droppedErrors, "_ = try? f()"),
      (BannedCalls.droppedErrors, "let a = b as! C"), (BannedCalls.printing, "print(1)"),
      (BannedCalls.printing, "if a { debugPrint(a) }"), (BannedCalls.printing, "dump(a)"),
      (BannedCalls.sideDoors, "@_spi(Tools) func f() {}"), (BannedCalls.sideDoors, "@inlinable"),
      (BannedCalls.unsafeSettings, ".unsafeFlags([])"),
      (BannedCalls.unsafeSettings, ".package(url: u, branch: b)"),
      (BannedCalls.sleeping, "Thread.sleep(forTimeInterval: 1)"),
      (BannedCalls.sleeping, "try await Task.sleep(for: .seconds(1))"),
      (BannedCalls.sleeping, "usleep(1)"), (BannedCalls.yielding, "await Task.yield()"),
      (BannedCalls.yielding, "sched_yield()"), (BannedCalls.locks, "let a = Mutex(0)"),
      (BannedCalls.locks, "private let a: Mutex<Int>"), (BannedCalls.clocks, "let a = Date()"),
      (BannedCalls.clocks, "f(at: .now)"), (BannedCalls.clocks, "let a = Date.now"),
      (BannedCalls.clocks, "ContinuousClock().measure {}"), (BannedCalls.clocks, "time(nil)"),
      (BannedCalls.skipping, "@Test(.disabled(\"flaky\"))"),
      (BannedCalls.skipping, "withKnownIssue { f() }"),
      (BannedCalls.waiting, "let a = await withCheckedContinuation { b = $0 }"),
      (BannedCalls.waiting, "let a = DispatchSemaphore(value: 0)"),
    ])
  func badLines(rule: Rule, line: String) {
    #expect(rule.lines(brokenBy: "// \(line)\n\"\(1)\"; \(line)\n", at: "a.swift") == [2])
  }

  @Test(
    "A rule accepts a good line.",
    arguments: [
      (BannedCalls.printing, "func fingerprint(_ a: Int) {}"),
      (BannedCalls.printing, "Self.dump(a, to: &b)"), (BannedCalls.printing, "func dump(_ a: A)"),
      (BannedCalls.clocks, "clock.now()"), (BannedCalls.clocks, "reading.now += 1"),
      (BannedCalls.clocks, "Date(timeIntervalSince1970: 0)"), (BannedCalls.clocks, "a.nowhere"),
      (BannedCalls.sleeping, "sleepless(1)"),
      (BannedCalls.droppedErrors, "let a = \"try! harder\""),
    ])
  func goodLines(rule: Rule, line: String) {
    #expect(rule.lines(brokenBy: line, at: "a.swift") == [])
  }
}

enum BannedCalls {
  static let droppedErrors = Rule.bans(
    ["try!", "try?", "as!"], because: "propagate the error, or catch it and say why")

  /// Methods with these names, and their declarations, are allowed.
  static let printing = Rule { file in
    let words = ["print(", "debugPrint(", "dump("].filter(file.mentions)
    if words.isEmpty { return [] }
    return file.code.enumerated().flatMap { index, line in
      words.filter { word in
        line.places(ofWord: word).contains { start in
          let before = String(decoding: line.utf8.prefix(start), as: UTF8.self)
          return !before.hasSuffix(".") && !before.hasSuffix("func ")
        }
      }.map {
        Finding(file, line: index, "'\($0)': a library does not write to its user's terminal")
      }
    }
  }

  static let sideDoors = Rule.bans(
    ["@_spi", "@inlinable", "@usableFromInline", "@_exported"],
    because: "the documented interface is the whole public interface")

  static let unsafeSettings = Rule.bans(
    ["unsafeFlags", "branch:", "revision:"],
    because: "SwiftPM refuses it in a versioned dependency")

  /// The files that may wait for time to pass.
  ///
  /// They are the time limit for requests, the tests' server, which can be slow on request, and the
  /// time limit of tests.
  static let timerFiles: Set = [
    "Sources/LarderFeeds/HTTP/URLSessionClient.swift",
    "Tests/FeedServer/FeedServer+Responses.swift", "Tests/Support/TimeLimit.swift",
  ]

  static let sleeping = Rule.bans(
    ["sleep(", "usleep(", "nanosleep(", "asyncAfter("],
    because: "wait for the event itself, not for the time it usually takes")

  /// A test may look again and again; in a library, what is left of an experiment yields.
  static let yielding = Rule.bans(
    ["Task.yield", "sched_yield", "pthread_yield", "this_thread::yield"],
    because: "wait for the event itself, not for the other tasks to get on")

  static let locks = Rule.bans(
    ["Mutex", "NSLock", "NSRecursiveLock", "OSAllocatedUnfairLock"],
    because: "on Linux, threads that wait for a Mutex slow it down for all; use a Lock")

  /// The files whose waits have a limit, or end with the tests' server.
  static let waitingFiles: Set = [
    "Tests/Support/Flag.swift", "Tests/Support/Threads.swift", "Tests/Support/Watched.swift",
    "Tests/LarderFeedsTests/ScriptedClient.swift", "Tests/FeedServer/FeedServer+Responses.swift",
  ]

  static let waiting = Rule.bans(
    [
      "withCheckedContinuation", "withCheckedThrowingContinuation", "DispatchSemaphore",
      "DispatchGroup", "NSCondition", "pthread_cond_wait",
    ],
    because: "a failing test must end; use Flag, Watched, onThreads or TimeLimit instead")

  static let skipping = Rule.bans(
    [".disabled(", "withKnownIssue", "XCTSkip"],
    because: "a test that does not run protects nothing")

  /// The system clock behind ``WallClock``, and the engine's clock for the slices of its cursors.
  static let clockFiles: Set = [
    "Sources/Larder/Lifetimes/WallClock.swift", "Sources/Larder/Engine/System/Clocks.swift",
    "Sources/CLarder/Clocks.cc",
  ]

  /// An implicit `.now` is always the system's; a property `now` may be another clock's.
  static let clocks = Rule { file in
    let words = [
      "Date()", "Date.init()", "Date.now", "DispatchTime.now", "ContinuousClock",
      "SuspendingClock", "clock_gettime", "gettimeofday", "CFAbsoluteTimeGetCurrent", "time(nil)",
    ].filter(file.mentions)
    if words.isEmpty, !file.mentions(".now") { return [] }
    return file.code.enumerated().flatMap { index, line in
      let bytes = Array(line.utf8)
      let implicit = line.places(ofWord: ".now").filter { start in
        start == 0 || [UInt8(ascii: " "), UInt8(ascii: "(")].contains(bytes[start - 1])
      }
      let found = words.filter(line.containsWord) + implicit.map { _ in ".now" }
      return found.map { Finding(file, line: index, "'\($0)': read the time from a WallClock") }
    }
  }
}
