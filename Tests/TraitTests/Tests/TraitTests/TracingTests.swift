import InMemoryTracing
import Larder
import Testing
import Tracing

/// With the trait `Tracing`, each load is a span of swift-distributed-tracing.
@Suite struct TracingTests {
  private static let tracer: InMemoryTracer = {
    let tracer = InMemoryTracer()
    InstrumentationSystem.bootstrap(tracer)
    return tracer
  }()

  private struct Failure: Error {}

  /// The finished spans of the loads of a cache.
  private func loads(of cache: String) -> [FinishedInMemorySpan] {
    Self.tracer.finishedSpans.filter {
      $0.operationName == "larder.load" && $0.attributes.get("larder.cache") == .string(cache)
    }
  }

  @Test("A load is a child of its first caller's span, and a hit has no span.")
  func child() async throws {
    _ = Self.tracer
    let cache = try Store.inMemory().cache("child", of: Int.self)
    try await withSpan("request") { _ in
      for _ in 0..<3 {
        let value = try await cache.value(for: "a") { 1 }
        #expect(value == 1)
      }
    }
    let span = try #require(loads(of: "child").first)
    #expect(loads(of: "child").count == 1)
    let request = try #require(
      Self.tracer.finishedSpans.first { $0.operationName == "request" })
    #expect(span.traceID == request.traceID && span.parentSpanID == request.spanID)
    #expect(span.attributes.get("larder.keys") == .int64(1))
    #expect(span.attributes.get("larder.previous") == .int64(0))
    #expect(span.attributes.get("larder.refresh") == .bool(false))
    #expect(span.attributes.get("larder.outcome") == .stringArray(["value"]))
    #expect(span.errors.isEmpty)
  }

  @Test("The closure of a load runs within its span.")
  func inside() async throws {
    _ = Self.tracer
    let cache = try Store.inMemory().cache("inside", of: Int.self)
    _ = try await cache.value(for: "a") { withSpan("download") { _ in 1 } }
    let span = try #require(loads(of: "inside").first)
    let download = try #require(
      Self.tracer.finishedSpans.first { $0.operationName == "download" })
    #expect(download.parentSpanID == span.spanID)
  }

  @Test("The span of a load that fails has its error, and one of several keys their outcomes.")
  func outcomes() async throws {
    _ = Self.tracer
    let cache = try Store.inMemory().cache("outcomes", of: Int.self)
    await #expect(throws: Failure.self) {
      try await cache.value(for: "a") { throw Failure() }
    }
    let failed = try #require(loads(of: "outcomes").first)
    #expect(failed.errors.first?.error is Failure && failed.attributes.get("larder.outcome") == nil)
    _ = try await cache.values(for: ["b", "c"]) { keys in
      keys.map { $0 == "b" ? .value(1) : .absent }
    }
    let span = try #require(loads(of: "outcomes").last)
    #expect(span.attributes.get("larder.keys") == .int64(2))
    #expect(span.attributes.get("larder.outcome") == .stringArray(["absent", "value"]))
  }
}
