/// How opening handles a damaged store.
public enum DamagePolicy: Sendable {
  /// Throws ``StoreError/corrupt(cache:key:file:)`` and changes nothing.
  case fail

  /// Moves the damaged store to its name plus `.damaged`, and creates an empty store in its place.
  ///
  /// ``Store/recovery`` reports it. Only one damaged store is kept: one from an earlier time is
  /// deleted. A mount point cannot be moved; opening throws then.
  case recreate

  /// Copies the readable entries to a new store, and moves the damaged one to its name plus
  /// `.damaged`.
  ///
  /// A store is salvaged if it cannot be opened because of damage, or if its directory contains the
  /// file `LARDER.damaged`, which a store writes when it finds damage while it is open. The two
  /// stores are exchanged in one step. ``Store/recovery`` reports it, and its
  /// ``RecoveryReport/salvage`` names the losses; see ``Store/salvage(from:to:)``. Only one damaged
  /// store is kept: one from an earlier time is deleted.
  ///
  /// Opening throws ``StoreError/diskFull`` without disk space for a copy of the store, and
  /// ``StoreError/corrupt(cache:key:file:)`` if nothing can be salvaged. In both cases the damaged
  /// store stays in place.
  case salvage
}
