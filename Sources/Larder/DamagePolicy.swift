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
