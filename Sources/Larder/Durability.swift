/// What an acknowledged write survives.
public enum Durability: Sendable {
  /// A crash or kill of the process.
  ///
  /// A power loss may lose the last writes, in reverse order of their commits. It never tears an
  /// entry or a batch.
  case processCrash

  /// Power loss, and so does every write that was acknowledged before it.
  ///
  /// It costs an fsync, which writers that meet share.
  case powerLoss
}
