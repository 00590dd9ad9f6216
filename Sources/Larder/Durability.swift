/// The failures that an acknowledged write survives.
public enum Durability: Sendable {
  /// The write survives a crash or kill of the process.
  ///
  /// A power loss may lose the most recent writes, the newest first. It never loses part of an
  /// entry or of a batch.
  case processCrash

  /// The write, and every write acknowledged before it, survives power loss.
  ///
  /// It costs an fsync, which concurrent writers share.
  case powerLoss
}
