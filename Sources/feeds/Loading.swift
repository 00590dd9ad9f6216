import ArgumentParser
import Dispatch
import Foundation
import Larder
import LarderFeeds

/// Runs a load; if it fails or is cancelled, reports the error and throws an exit code.
func load<Value: Sendable>(
  in place: StorePlace, _ work: @escaping @Sendable () async throws -> Loaded<Value>
) async throws -> Loaded<Value> {
  do {
    return try await cancelledByInterrupt(work)
  } catch let error as FeedError {
    if place == .disk, case .remote(_, cache: nil) = error {
      complain("\(error) No saved value is fresh enough to show.")
    } else {
      complain("\(error)")
    }
    if case .remote(let failure, _) = error, failure.kind == .invalidData { throw ExitCode(3) }
    throw ExitCode(2)
  } catch is CancellationError {
    complain("The load was cancelled; nothing was saved.")
    throw ExitCode(130)
  }
}

/// Runs `work` and cancels it on SIGINT; a second SIGINT ends the process.
private func cancelledByInterrupt<R: Sendable>(
  _ work: @escaping @Sendable () async throws -> R
) async throws -> R {
  let (interrupts, interrupt) = AsyncStream.makeStream(of: Void.self)
  signal(SIGINT, SIG_IGN)
  let source = DispatchSource.makeSignalSource(signal: SIGINT)
  source.setEventHandler {
    signal(SIGINT, SIG_DFL)
    interrupt.yield()
  }
  // Wait for the handler before the request begins, so that no interrupt is lost.
  await withCheckedContinuation { registered in
    source.setRegistrationHandler { registered.resume() }
    source.resume()
  }
  let task = Task { try await work() }
  let watch = Task { for await _ in interrupts { task.cancel() } }
  defer {
    watch.cancel()
    source.cancel()
  }
  return try await task.value
}

/// Describes the source of a value, whether it was saved, and its age.
func provenance<Value>(of loaded: Loaded<Value>, in place: StorePlace) -> String {
  if loaded.isRevalidated { return "from the cache, confirmed by the server" }
  guard let savedAt = loaded.savedAt else {
    guard loaded.isSaved else { return "from the server, not saved" }
    return place == .memory ? "from the server, kept in memory only" : "from the server, saved"
  }
  let state = loaded.isStale ? "stale, saved" : "saved"
  let refresh = loaded.isRefreshing ? ", being refreshed" : ""
  let (date, age) = (savedAt.formatted(.iso8601), words(forAge: loaded.age))
  return "from the cache, \(state) \(date), \(age)\(refresh)"
}

/// Prints warnings about failures during a successful load.
func warn<Value>(about loaded: Loaded<Value>, _ subject: String) {
  if let failure = loaded.remoteFailure { complain("warning: \(failure)") }
  if let failure = loaded.saveFailure { complain("warning: \(subject) was not saved: \(failure)") }
}

/// Prints a line to standard error.
func complain(_ message: String) {
  FileHandle.standardError.write(Data("feeds: \(message.escapedForTerminal)\n".utf8))
}

/// Describes an age in the largest unit that fits, rounded down.
private func words(forAge age: Duration) -> String {
  guard age >= .zero else { return "in the future" }
  let seconds = age.components.seconds
  let units: [(Int64, String)] = [(86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")]
  guard let (length, name) = units.first(where: { seconds >= $0.0 }) else { return "just now" }
  let count = seconds / length
  return "\(count) \(name)\(count == 1 ? "" : "s") ago"
}
