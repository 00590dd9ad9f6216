/// The part that a store takes in its engine's commits: counting, noting what expires, notifying,
/// and following a reopened database.
final class StoreParticipant: CommitParticipant {
  private let accounting: Accounting
  private let observations: Observations
  private let invalidatedTags: InvalidatedTags
  private let memory: StoreMemory?
  private let loads: LoadRegister
  private let endedIDs: EndedIDs
  private let notes: ExpiryNotes
  // Weak: open caches hold the context, the context the engine, and the engine the participant.
  private let openCaches: @Sendable () -> OpenCaches?

  /// - Parameters:
  ///   - context: Provides the accounting and the observations; it is not held.
  ///   - openCaches: The open caches of the store, which are held weakly.
  init(for context: StoreContext, _ openCaches: OpenCaches) {
    accounting = context.budgets.accounting
    observations = context.observations
    invalidatedTags = context.invalidatedTags
    memory = context.memory
    loads = context.loads
    endedIDs = context.endedIDs
    notes = context.notes
    self.openCaches = { [weak openCaches] in openCaches }
  }

  var needs: (counting: Bool, reports: Bool) {
    (accounting.isCounting || notes.needsWrite, !observations.isEmpty || invalidatedTags.isUnderWay)
  }

  func willWrite(_ batch: borrowing WriteBatch, without failed: Set<Int>) {
    if !loads.isEmpty { loads.noteChanges(of: batch, without: failed) }
    memory?.willWrite(batch)
  }

  func didWrite(_ batch: borrowing WriteBatch, without failed: Set<Int>) {
    if !loads.isEmpty { loads.noteChanges(of: batch, without: failed) }
    memory?.didWrite(batch)
    notes.note(batch, without: failed)
  }

  func admit(
    _ batch: borrowing WriteBatch, without failed: Set<Int>, replacedBytes: (_ row: Int) -> Int?
  ) -> Shortage? {
    notes.admit(batch)
    return accounting.admit(batch, without: failed, replacedBytes: replacedBytes)
  }

  func contribute(to rows: inout WriteBatch) {
    accounting.putCounts(in: &rows)
    notes.contribute(to: &rows)
  }

  func ended(didCommit: Bool) {
    accounting.end(didCommit: didCommit)
    notes.ended(didCommit: didCommit)
  }

  func committed(_ batch: borrowing WriteBatch, _ commit: Commit) {
    if invalidatedTags.isUnderWay {
      invalidatedTags.committed(batch, sequence: commit.sequence)
    }
    observations.notify(batch, commit)
  }

  func reopened(reading read: EngineReader) -> Bool {
    invalidatedTags.readAgain(by: read)
    memory?.reopened()
    // Last: observers read again at once, and must find the new ids and counts.
    defer { observations.reopened() }
    guard let openCaches = openCaches() else { return true }
    defer { accounting.readAgain(openCaches, by: read) }
    return openCaches.readIDs(by: read, noting: endedIDs)
  }
}
