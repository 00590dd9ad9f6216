import Larder

/// The event counts of a tier.
final class TierCounts: Sendable {
  // Reads, by what the server had.
  private let confirmedCopies: EventCount
  private let values: EventCount
  private let absences: EventCount
  private let unusable: EventCount
  private let failedReads: EventCount
  // Writes, by what came of them.
  private let writes: EventCount
  private let overtakenWrites: EventCount
  private let failedWrites: EventCount
  let awaitedLoads: EventCount
  let invalidations: EventCount
  let connections: EventCount
  private let connected: GaugeValue

  init(ofNamespace namespace: String) {
    let namespace = ("namespace", namespace)
    func reads(_ outcome: String) -> EventCount {
      EventCount("larder_tier_reads_total", [namespace, ("outcome", outcome)])
    }
    func writes(_ outcome: String) -> EventCount {
      EventCount("larder_tier_writes_total", [namespace, ("outcome", outcome)])
    }
    confirmedCopies = reads("confirmed")
    values = reads("value")
    absences = reads("absent")
    unusable = reads("unusable")
    failedReads = reads("failed")
    self.writes = writes("written")
    overtakenWrites = writes("overtaken")
    failedWrites = writes("failed")
    awaitedLoads = EventCount("larder_tier_awaited_loads_total", [namespace])
    invalidations = EventCount("larder_tier_invalidations_total", [namespace])
    connections = EventCount("larder_tier_connections_total", [namespace])
    connected = GaugeValue("larder_tier_connected", [namespace])
    connected.set(0)
  }

  /// Tells the state of the tier to swift-metrics.
  func note(_ state: SharedTier.State) { connected.set(state == .connected ? 1 : 0) }

  func add(_ content: TierContent) {
    switch content {
    case .same: confirmedCopies.add()
    case .value: values.add()
    case .absent: absences.add()
    case .unusable: unusable.add()
    case .unavailable: failedReads.add()
    }
  }

  func add(_ writing: TierWriting) {
    switch writing {
    case .written: writes.add()
    case .refused: overtakenWrites.add()
    case .removed, .unavailable: failedWrites.add()
    }
  }

  var statistics: SharedTier.Statistics {
    var statistics = SharedTier.Statistics()
    statistics.confirmedCopies = confirmedCopies.value
    statistics.values = values.value
    statistics.absences = absences.value
    statistics.unusable = unusable.value
    statistics.failedReads = failedReads.value
    statistics.writes = writes.value
    statistics.overtakenWrites = overtakenWrites.value
    statistics.failedWrites = failedWrites.value
    statistics.awaitedLoads = awaitedLoads.value
    statistics.invalidations = invalidations.value
    statistics.connections = connections.value
    return statistics
  }
}
