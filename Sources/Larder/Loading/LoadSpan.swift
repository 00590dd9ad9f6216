#if Tracing
  import Tracing
#endif

extension Loads {
  /// Runs a load; with the package trait `Tracing`, in a span of swift-distributed-tracing.
  ///
  /// The span's parent is that of the first caller, who started the load.
  func inSpan(
    _ flight: Machine.Flight, _ load: () async throws -> [LoadReply<Value>]
  ) async throws -> [LoadReply<Value>] {
    #if Tracing
      try await withSpan("larder.load") { span in
        span.attributes["larder.cache"] = flight.call.core.name
        span.attributes["larder.keys"] = flight.loaded.count
        span.attributes["larder.refresh"] = flight.waiterCount == 0
        let stale = flight.loaded.count { flight.members[$0].part.found.entry != nil }
        span.attributes["larder.previous"] = stale
        let replies = try await load()
        span.attributes["larder.outcome"] = Set(replies.map(\.content.name)).sorted()
        return replies
      }
    #else
      try await load()
    #endif
  }
}

#if Tracing
  extension LoadReply.Content {
    /// The kind of the reply, as its attribute names it.
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
