import Synchronization
package import Testing

/// Marks a suite whose tests show rows of the acceptance tables, and records which of them run.
///
/// The testing library calls ``prepare(for:)`` for every test of a run before it starts the first
/// one, so ``planned`` is complete for any test that reads it. A suite fails unless each of its
/// planned tests has run at least one case.
package struct Acceptance: SuiteTrait, TestTrait, TestScoping {
  private static let plannedTests = Mutex<Set<String>>([])
  private static let startedTests = Mutex<Set<String>>([])

  /// The marked tests of this run that no condition can skip, as `Suite/function`.
  package static var planned: Set<String> { plannedTests.withLock { $0 } }

  /// Whether this run has all tests; a filtered one leaves out tests that rows name.
  package static let isWholeRun = !CommandLine.arguments.contains { argument in
    ["--filter", "--skip"].contains { argument == $0 || argument.hasPrefix($0 + "=") }
  }

  package let isRecursive = true

  package func prepare(for test: Test) async throws {
    guard !test.isSuite, !test.traits.contains(where: { $0 is ConditionTrait }) else { return }
    _ = Self.plannedTests.withLock { $0.insert(Self.name(of: test)) }
  }

  package func scopeProvider(for test: Test, testCase: Test.Case?) -> Acceptance? {
    test.isSuite || testCase != nil ? self : nil
  }

  package func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    let name = Self.name(of: test)
    guard test.isSuite else {
      _ = Self.startedTests.withLock { $0.insert(name) }
      return try await function()
    }
    try await function()
    let started = Self.startedTests.withLock { $0 }
    for test in Self.planned.subtracting(started) where test.hasPrefix(name + "/") {
      Issue.record("\(test) has run no case. Give it arguments.")
    }
  }

  private static func name(of test: Test) -> String {
    let path = test.id.nameComponents.joined(separator: "/")
    return String(path.prefix { $0 != "(" })
  }
}

extension Trait where Self == Acceptance {
  /// The suite's tests show rows of the acceptance tables.
  package static var acceptance: Self { Acceptance() }
}
