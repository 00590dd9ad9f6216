import Foundation
import HTTPTypes
import Larder
import Synchronization

extension ResponseCache {
  /// How long requests for a key do not wait for each other, after a response that is not kept.
  ///
  /// Varnish does this for two minutes, too. It does not follow from a response to a request with
  /// `Authorization`, as another request's may be kept.
  private static var notSharedTime: Duration { .seconds(120) }

  /// What there is under a key for a request.
  enum Found: Sendable {
    case answer(HTTPResponse, Data)
    /// The response is under another key.
    case varies(Variants)
    /// Nothing, and the cache does not ask the handler.
    case missing
  }

  /// A response of the handler that a stale one may replace (RFC 5861).
  private struct ServerTrouble: Error {}

  /// What a call of the handler has brought, for the request that has called it.
  private struct Brought: Sendable {
    var response: HTTPResponse?
    var body = Data()
    var status = 0
    var isStored = false
    var failure: (any Error)?
  }

  /// How a stored response may be used for a request.
  private enum Use: Equatable {
    case asItIs
    /// It is stale, and is refreshed in the background.
    case andRefresh
    /// The handler is asked first, for this reason in the words of RFC 9211.
    case onceConfirmed(String)
  }

  /// Answers a request from what is under a key, or with the handler.
  func find(_ selected: Selected, for exchange: Exchange) async throws -> Found {
    let entry: Entry<Stored>?
    do {
      entry = try await present(selected.key)
    } catch {
      // A store that cannot be read fails no request.
      return .missing
    }
    var (loading, reason) = (Loading(), selected.isVariant ? "vary-miss" : "uri-miss")
    if exchange.request.headerFields[.authorization] == nil {
      loading.notSharedFor = Self.notSharedTime
    }
    switch entry?.value {
    case .varies(let variants)?: return .varies(variants)
    case .response(let stored)?:
      let age = stored.age(after: entry?.age ?? .zero)
      switch use(of: stored, at: age, for: exchange.control) {
      case .asItIs: return answer(stored, age, "hit; ttl=\(stored.freshness - age)")
      case .andRefresh:
        loading.staleWhileRevalidate = true
        _ = try await fill(selected, exchange, loading)
        return answer(stored, age, "hit; ttl=\(stored.freshness - age)")
      case .onceConfirmed(let why): reason = why
      }
      if stored.freshness > age {
        // It is fresh, and the request wants more.
        loading.maxAge = .seconds(0)
      } else if !stored.mustBeValidated {
        loading.staleIfError = stored.control.staleIfError.map { .seconds($0) }
      }
    case nil: break
    }
    if exchange.control.onlyIfCached {
      let response = HTTPResponse(status: .gatewayTimeout)
      return .answer(noted(response, "fwd=\(reason)"), Data())
    }
    if exchange.request.method == .head { return try await head(selected, exchange, entry?.value) }
    return try await load(selected, exchange, loading, reason)
  }

  /// The entry of a key, fresh or stale; from memory without a change of thread.
  private func present(_ key: String) async throws -> Entry<Stored>? {
    if let entry = try responses.residentEntry(for: key) { return entry }
    switch try await responses.store.run({ try responses.lookup(for: key) }) {
    case .fresh(let entry), .stale(let entry): return entry
    case .expired, .missing: return nil
    }
  }

  /// RFC 9111, sections 4.2.4 and 5.2.1.
  private func use(of stored: StoredResponse, at age: Int, for request: CacheControl) -> Use {
    if request.noCache { return .onceConfirmed("request") }
    if let maxAge = request.maxAge, age > maxAge { return .onceConfirmed("request") }
    let left = stored.freshness - age
    if left > 0 {
      return (request.minFresh ?? 0) > left ? .onceConfirmed("request") : .asItIs
    }
    if stored.mustBeValidated { return .onceConfirmed("stale") }
    if let maxStale = request.maxStale, -left <= maxStale { return .asItIs }
    if let window = stored.control.staleWhileRevalidate, -left <= window { return .andRefresh }
    return .onceConfirmed("stale")
  }

  private func answer(_ stored: StoredResponse, _ age: Int, _ note: String) -> Found {
    var response = stored.response
    response.headerFields[.age] = "\(age)"
    return .answer(noted(response, note), stored.body)
  }

  /// A response with a member of the field `Cache-Status`.
  func noted(_ response: HTTPResponse, _ note: String) -> HTTPResponse {
    guard let name = options.statusName else { return response }
    var response = response
    response.headerFields.append(HTTPField(name: .cacheStatus, value: "\(name); \(note)"))
    return response
  }
}

// MARK: - The handler

extension ResponseCache {
  /// Answers a request with the handler, and keeps what may be kept.
  private func load(
    _ selected: Selected, _ exchange: Exchange, _ loading: Loading, _ reason: String
  ) async throws -> Found {
    let (entry, brought) = try await fill(selected, exchange, loading)
    if let response = brought.response, entry?.isStale != true {
      var note = "fwd=\(reason); fwd-status=\(brought.status)"
      if brought.isStored { note += "; stored" }
      return .answer(noted(response, note), brought.body)
    }
    switch entry?.value {
    case .varies(let variants)?: return .varies(variants)
    case .response(let stored)?:
      let age = stored.age(after: entry?.age ?? .zero)
      let isStale = entry?.isStale == true
      let note = isStale ? "hit; ttl=\(stored.freshness - age)" : "fwd=\(reason); collapsed"
      return answer(stored, age, note)
    case nil: return .missing
    }
  }

  /// Fills a key by the handler, unless another request is doing that, which it then waits for.
  ///
  /// Throws the handler's error, and `CancellationError`.
  private func fill(
    _ selected: Selected, _ exchange: Exchange, _ loading: Loading
  ) async throws -> (LoadedEntry<Stored>?, Brought) {
    let brought = Mutex(Brought())
    do {
      let entry = try await responses.entry(for: selected.key, loading: loading) { previous in
        try await reply(to: exchange, selected, previous, loading) { new in
          brought.withLock { $0 = new }
        }
      }
      return (entry, brought.withLock { $0 })
    } catch {
      try Task.checkCancellation()
      let brought = brought.withLock { $0 }
      if let failure = brought.failure { throw failure }
      // The handler has answered, with trouble that nothing may replace; or the store has failed.
      return (nil, brought)
    }
  }

  /// Calls the handler, and decides what is kept of its response.
  private func reply(
    to exchange: Exchange, _ selected: Selected, _ previous: Previous<Stored>?,
    _ loading: Loading, _ note: (Brought) -> Void
  ) async throws -> LoadReply<Stored> {
    var old: StoredResponse?
    if case .response(let stored)? = previous?.value { old = stored }
    var (response, body, brought) = (HTTPResponse(status: .ok), Data(), Brought())
    var time = Duration.zero
    do {
      (response, body, time) = try await ask(exchange, with: old?.condition ?? [:])
      brought.status = response.status.code
      if response.status == .notModified, let stored = old {
        if let tag = response.headerFields[.eTag], tag != stored.headerFields[.eTag] {
          // It confirms something else.
          (response, body, time) = try await ask(exchange)
          brought.status = response.status.code
        } else {
          (response, body) = (stored.updated(by: response), stored.body)
        }
      }
    } catch {
      brought.failure = error
      note(brought)
      throw NotShared(error)
    }
    (brought.response, brought.body) = (response, body)
    if old != nil, loading.staleIfError != nil, response.status.isServerError {
      note(brought)
      throw NotShared(ServerTrouble())
    }
    let rule = SharedStoring(
      response, body, to: exchange.request, options, after: time,
      now: responses.store.clock.now())
    guard let rule else {
      note(brought)
      return .notShared(.response(StoredResponse(response, body)))
    }
    let stored = StoredResponse(response, body, age: rule.age, freshness: rule.freshness)
    if Set(rule.varies).isSubset(of: selected.names) {
      brought.isStored = true
      note(brought)
      return .value(.response(stored), lifetime: rule.lifetime)
    }
    note(brought)
    let variants = await keep(stored, rule, selected, exchange)
    guard let variants else { return .notShared(.response(stored)) }
    brought.isStored = true
    note(brought)
    return .value(.varies(variants))
  }

  /// Calls the handler to fill the cache.
  ///
  /// If the response has no `Date`, it gets one: the time of its arrival (RFC 9110, section 6.6.1).
  ///
  /// - Returns: The response, its body, and the time that the handler took.
  private func ask(
    _ exchange: Exchange, with condition: HTTPFields = [:]
  ) async throws -> (HTTPResponse, Data, Duration) {
    let clock = responses.store.clock
    let start = clock.uptime()
    var (response, body) = try await exchange.handler(
      exchange.unconditional(with: condition), Data())
    if response.headerFields[.date] == nil { response.headerFields[.date] = httpText(clock.now()) }
    return (response, body, clock.uptime() - start)
  }

  /// Keeps a response that depends on more than is known of its URL, under the key of its variant.
  ///
  /// - Returns: The list of variants; nil if the response was not kept.
  private func keep(
    _ stored: StoredResponse, _ rule: SharedStoring, _ selected: Selected, _ exchange: Exchange
  ) async -> Variants? {
    let variants = Variants(names: rule.varies, generation: UInt64.random(in: 0 ... .max))
    let variant = Selected(variants, of: exchange, under: selected.primary)
    do {
      return try await responses.store.run {
        if selected.isVariant {
          // The list of its URL is too short: the next request begins another one.
          try responses.remove(selected.primary)
          return nil
        }
        try responses.save(.response(stored), for: variant.key, lifetime: rule.lifetime)
        return variants
      }
    } catch {
      // The request gets its response nevertheless.
      return nil
    }
  }

  /// Answers a HEAD request with the handler; it brings no body to keep.
  ///
  /// If its header fields are not those of the kept response, that is forgotten.
  private func head(
    _ selected: Selected, _ exchange: Exchange, _ kept: Stored?
  ) async throws -> Found {
    let (response, body) = try await bypass(exchange, "miss")
    if case .response(let stored)? = kept, response.status == .ok,
      stored.differs(from: response.headerFields)
    {
      do {
        _ = try await responses.store.run { try responses.remove(selected.key) }
      } catch {
        // A store that fails fails no request that only reads.
      }
    }
    return .answer(response, body)
  }

  /// Answers a request with the handler alone.
  func bypass(_ exchange: Exchange, _ reason: String) async throws -> (HTTPResponse, Data) {
    let (response, body) = try await exchange.handler(exchange.request, exchange.body)
    return (noted(response, "fwd=\(reason); fwd-status=\(response.status.code)"), body)
  }

  /// Answers a request that may change something, and forgets what it has changed (RFC 9111,
  /// section 4.4).
  func change(
    by request: HTTPRequest, _ body: Data, _ handler: Handler
  ) async throws -> (HTTPResponse, Data) {
    let (response, reply) = try await handler(request, body)
    let isSafe = request.method == .options || request.method == .trace
    if !isSafe, (200..<400).contains(response.status.code) {
      var keys = [Exchange.key(request)]
      for name in [HTTPField.Name.location, .contentLocation] {
        keys.append(response.headerFields[name].flatMap { Exchange.key(of: $0, beside: request) })
      }
      let changed = keys.compactMap { $0 }
      try await responses.store.run { for key in changed { try responses.remove(key) } }
    }
    return (noted(response, "fwd=method; fwd-status=\(response.status.code)"), reply)
  }
}
