extension Store {
  /// Ends every entry, of all caches, that was saved with a tag before.
  ///
  /// ```swift
  /// try sessions.save(session, for: id, tags: ["user:42"])
  /// try store.invalidate(tag: "user:42")                   // logs the user out everywhere
  /// ```
  ///
  /// From its return on, these entries are expired, and neither
  /// ``Cache/touch(_:lifetime:validator:)`` nor a conditional change brings one of them back. What
  /// is saved with the tag afterwards is fresh. The number of entries does not matter: they are
  /// deleted by the next sweeps, and until then the store keeps the tag, and compares it with each
  /// tagged entry that is read.
  ///
  /// - Parameters:
  ///   - tag: 1 to 64 bytes of UTF-8. Texts that are equal as `String`s are one tag.
  ///   - durability: ``Durability/powerLoss`` by default, whatever the store's is.
  /// - Throws: ``StoreError/invalidArgument(_:)`` if the tag is empty or too long: nothing was
  ///   written. ``StoreError/diskFull`` or ``StoreError/io(_:)`` if the write failed: the entries
  ///   have ended, or have not. ``StoreError/writesDisabled(cause:)``,
  ///   ``StoreError/readOnly(cause:)``, ``StoreError/closed``.
  /// - Complexity: One append, shared with concurrent writers, and one fsync.
  public func invalidate(tag: String, durability: Durability = .powerLoss) throws {
    let tag = try Tags.bytes(of: tag)
    var write = WriteBatch()
    let key = Metadata.tag(tag)
    write.put(key.span.bytes, stamp: InvalidatedTags.stamp)
    // It must be possible on a full disk, as a removal is.
    write.mayUseReserve = true
    try context.engine.checkOpen()
    try context.invalidatedTags.invalidating(tag) { () throws(StoreError) in
      try context.commit(&write, durability)
    }
  }
}
