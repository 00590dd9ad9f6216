#if Tracing
  import Tracing

  extension Loads {
    /// Runs a load in a span of swift-distributed-tracing.
    ///
    /// Its parent is the current span of the caller that started the load.
    func inSpan(
      _ flight: Machine.Flight, _ load: () async throws -> [LoadReply<any Sendable>]
    ) async throws -> [LoadReply<any Sendable>] {
      try await withSpan("larder.load") { span in
        let parts = flight.loaded.map { flight.members[$0].part }
        span.attributes["larder.cache"] = flight.call.core.name
        span.attributes["larder.keys"] = parts.count
        span.attributes["larder.previous"] = parts.count { $0.found.entry != nil }
        span.attributes["larder.refresh"] = flight.waiterCount == 0
        let replies = try await load()
        span.attributes["larder.outcome"] = Set(replies.map(\.content.name)).sorted()
        return replies
      }
    }
  }

  extension LoadReply.Content {
    /// The kind of the reply, as the attribute names it.
    fileprivate var name: String {
      switch self {
      case .value: "value"
      case .unchanged: "unchanged"
      case .absent: "absent"
      case .unsaved: "unsaved"
      case .notShared: "notShared"
      }
    }
  }
#endif
