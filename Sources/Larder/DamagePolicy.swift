/// What opening does with a store that is damaged.
public enum DamagePolicy: Sendable {
  /// Throws ``StoreError/corrupt(cache:key:file:)`` and changes nothing.
  case fail

  /// Moves the directory aside, to its name with `.damaged` behind it, and starts an empty store.
  ///
  /// One copy is kept: what an earlier time left there is deleted. ``Store/recovery`` says so. A
  /// directory that something is mounted on cannot be moved, and opening throws then.
  case recreate

  /// Makes a new store of what can be read, and moves the damaged one aside, to its name with
  /// `.damaged` behind it.
  ///
  /// It is for a store that cannot be opened, and for one in which damage was met while it was
  /// open: that leaves a file `LARDER.damaged` in its directory. Nothing is repaired while a store
  /// is open. The new store takes the damaged one's place in one step. ``Store/recovery`` has the
  /// ``RecoveryReport/salvage``, which names what is lost; see ``Store/salvage(from:to:)``.
  ///
  /// It needs room for a copy of the store; without it, opening throws ``StoreError/diskFull``. One
  /// damaged store is kept: what an earlier time left there is deleted. When nothing can be
  /// salvaged, opening throws ``StoreError/corrupt(cache:key:file:)``. In both cases the store is
  /// where it was.
  case salvage
}
