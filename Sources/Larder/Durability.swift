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

/// What opening does with a store that is damaged.
public enum DamagePolicy: Sendable {
  /// Throws ``StoreError/corrupt(cache:key:file:)`` and changes nothing.
  case fail

  /// Moves the directory aside, to its name with `.damaged` behind it, and starts an empty store.
  ///
  /// One copy is kept: what an earlier time left there is deleted. ``Store/recovery`` says so. A
  /// directory that something is mounted on cannot be moved, and opening throws then.
  case recreate
}
