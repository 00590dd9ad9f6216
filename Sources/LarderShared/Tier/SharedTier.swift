package import Larder
import Synchronization

/// A Redis or Valkey server behind the caches of many machines: memory, disk, tier, source.
///
/// What it promises for ``SharedCache``:
///
/// *A value that `SharedCache` returns as confirmed is what the server that owned the key held at
/// some moment no more than 2 s (the lease) before the call returned. While the tier is degraded,
/// and only with `.serveLocal`, a local value within its lifetime is returned, marked unconfirmed.
/// A load that began before an acknowledged save or remove never replaces it on the server while
/// that value or its tombstone is there. Failover may lose acknowledged writes. A primary that is
/// cut off counts as owner until it refuses writes: in a cluster after the node timeout; with
/// replication after `min-replicas-max-lag` if `min-replicas-to-write` is set, else not before it
/// is demoted.*
///
/// A machine asks before it uses a copy on its disk: the version of a record is 8 bytes. Values in
/// memory are used without asking while the lease of the connection runs that has confirmed them:
/// the server pushes what others change over the same connection, behind the reply.
package final class SharedTier: Sendable {
  let namespace: String
  let options: TierOptions
  private let news: TierNews
  private let link: any ServerLink

  /// - Parameters:
  ///   - namespace: What the keys of this application begin with; see ``SharedKeys``.
  ///   - options: How the tier is used.
  ///   - makeLink: Makes the link, which gives its effects to the observer, in their order.
  /// - Throws: ``StoreError/invalidArgument(_:)`` if the namespace is not allowed.
  package init(
    namespace: String, _ options: TierOptions = TierOptions(),
    makeLink: (
      _ leaseKey: [UInt8], _ observer: @escaping @Sendable (LinkMachine.Effect) -> Void
    ) -> any ServerLink
  ) throws(StoreError) {
    (self.namespace, self.options) = (namespace, options)
    let leaseKey = try SharedKeys.leaseKey(ofNamespace: namespace)
    let news = TierNews()
    self.news = news
    link = makeLink(leaseKey) { news.heard($0) }
  }

  deinit { link.close() }

  /// Ends the tier: it is degraded for good.
  package func close() { link.close() }

  func add(_ part: any SharedPart, of keys: SharedKeys) { news.add(part, of: keys) }

  /// Sends commands; returns their replies, and the lease of their connection.
  func ask(
    _ commands: RESPCommands, arrived: @escaping @Sendable () -> Void
  ) async -> Result<(replies: [RESPValue], lease: Lease), SharedFailure> {
    let arrival = Arrival()
    let result = await link.ask(commands) { [news] in
      arrival.lease.withLock { $0 = news.lease }
      arrived()
    }
    return result.map { ($0, arrival.lease.withLock { $0 } ?? Lease()) }
  }

  private final class Arrival: Sendable {
    let lease = Mutex<Lease?>(nil)
  }
}

/// How a tier is used.
package struct TierOptions: Sendable {
  /// What reads do while the server cannot be asked.
  package enum Degraded: Sendable {
    /// They return entries of the machine, within their lifetime, as unconfirmed.
    case serveLocal
    /// They load.
    case askSource
  }

  /// ``Degraded/serveLocal`` by default.
  package var whenDegraded = Degraded.serveLocal
  /// The size of the largest record that is shared, in bytes; 1 MiB by default.
  ///
  /// A larger one stays on its machine.
  package var largestRecord = 1 << 20

  package init() {}
}

/// What a tier has heard from its server: the lease of its connection, and what others change.
private final class TierNews: Sendable {
  private struct Part {
    weak var part: (any SharedPart)?
    let keys: SharedKeys
  }

  private struct State {
    var lease: Lease?
    /// By what their keys begin with; a process may have several stores.
    var parts: [[UInt8]: [Part]] = [:]
  }

  private let state = Mutex(State())

  var lease: Lease? { state.withLock { $0.lease } }

  func add(_ part: any SharedPart, of keys: SharedKeys) {
    state.withLock { state in
      // Those of stores that were closed.
      state.parts[keys.prefix]?.removeAll { $0.part == nil }
      state.parts[keys.prefix, default: []].append(Part(part: part, keys: keys))
    }
  }

  func heard(_ effect: LinkMachine.Effect) {
    switch effect {
    case .leased(_, let end):
      // What was found while there was no lease may have changed since.
      let isNew = lease == nil
      if isNew { forgetAll() }
      state.withLock { state in
        let lease = state.lease ?? Lease()
        lease.extend(to: end)
        state.lease = lease
      }
      if isNew { for part in parts { part.connected() } }
    case .leaseEnded: forgetAll()
    case .invalidated(nil):
      // The next values may be believed as long as the last ones.
      let end = lease?.lastEnd
      forgetAll()
      if let end { heard(.leased(0, until: end)) }
    case .invalidated(let keys?): for key in keys { changed(key) }
    case .connect, .send, .disconnect, .answer, .changed: break
    }
  }

  private var parts: [any SharedPart] {
    state.withLock { $0.parts.values.joined().compactMap(\.part) }
  }

  private func forgetAll() {
    state.withLock { state in
      state.lease?.end()
      state.lease = nil
    }
    for part in parts { part.allChangedElsewhere() }
  }

  private func changed(_ key: [UInt8]) {
    guard let prefix = SharedKeys.prefix(of: key).map(Array.init) else { return }
    let parts = state.withLock { $0.parts[prefix, default: []] }
    guard let userKey = parts.first?.keys.userKey(of: key) else { return }
    for part in parts { part.part?.changedElsewhere(userKey) }
  }
}
