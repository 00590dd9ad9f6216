extension SharedTier {
  /// Whether a tier's server can be asked.
  public enum State: Sendable, Hashable {
    /// The first connection is being made; the server cannot be asked yet.
    case connecting
    /// The server can be asked, or all primaries of the cluster.
    case connected
    /// It cannot be asked, for this reason; the tier goes on trying to connect.
    ///
    /// In a cluster, one of the primaries cannot be asked; the keys of the others can be.
    case degraded(SharedFailure)
    /// The tier was closed.
    case closed
  }

  /// What a tier has asked its server, and heard from it, since it was created.
  ///
  /// Values in memory that are returned without asking are counted by the cache; see
  /// `Store.statistics`.
  public struct Statistics: Sendable, Hashable, Codable {
    /// The copies on disk that the server has confirmed, by 8 bytes.
    public var confirmedCopies = 0
    /// The values that were read from the server.
    public var values = 0
    /// The keys for which it had no value.
    public var absences = 0
    /// The keys under which it had something that is no value of this tier.
    ///
    /// It is damaged, of a later version of Larder, or of another program. Loads do not replace it.
    public var unusable = 0
    /// The reads that had no answer.
    public var failedReads = 0
    /// The values and removals that were written.
    public var writes = 0
    /// The values of loads that were not written: another machine has changed the key since.
    public var overtakenWrites = 0
    /// The values and removals that the server does not have.
    ///
    /// It could not be asked, or they are too large.
    public var failedWrites = 0
    /// The loads of other machines that this one has waited for; see ``Options/loadWait``.
    public var awaitedLoads = 0
    /// The keys that the server has said were changed elsewhere.
    public var invalidations = 0
    /// The connections that were made.
    public var connections = 0

    /// Creates counts of zero.
    public init() {}
  }
}

extension SharedTier.State: CustomStringConvertible {
  /// The state in English: `connected`, or `degraded: the server cannot be reached: no route`.
  public var description: String {
    switch self {
    case .connecting: "connecting"
    case .connected: "connected"
    case .degraded(let failure): "degraded: \(failure)"
    case .closed: "closed"
    }
  }
}
