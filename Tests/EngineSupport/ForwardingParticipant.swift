package import Larder

/// A participant that passes each call on to another one, if it has one.
///
/// A conforming type implements only the calls that it observes or changes.
package protocol ForwardingParticipant: CommitParticipant {
  /// The participant that is called; nil for none.
  var base: (any CommitParticipant)? { get }
}

extension ForwardingParticipant {
  package var needs: (counting: Bool, reports: Bool) { base?.needs ?? (false, false) }

  package func willWrite(_ batch: borrowing WriteBatch, without failed: Set<Int>) {
    base?.willWrite(batch, without: failed)
  }

  package func didWrite(_ batch: borrowing WriteBatch, without failed: Set<Int>) {
    base?.didWrite(batch, without: failed)
  }

  package func admit(
    _ batch: borrowing WriteBatch, without failed: Set<Int>, replacedBytes: (_ row: Int) -> Int?
  ) -> Shortage? {
    base?.admit(batch, without: failed, replacedBytes: replacedBytes)
  }

  package func contribute(to rows: inout WriteBatch) { base?.contribute(to: &rows) }

  package func ended(didCommit: Bool) { base?.ended(didCommit: didCommit) }

  package func committed(_ batch: borrowing WriteBatch, _ commit: Commit) {
    base?.committed(batch, commit)
  }

  package func reopened(reading read: EngineReader) -> Bool {
    base?.reopened(reading: read) ?? true
  }
}
