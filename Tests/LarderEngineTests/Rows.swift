import AcceptanceRows

/// The rows of the acceptance tables that the engine's tests show.
enum Rows {
  /// The store's tests show the others.
  static let tables = [AcceptanceTable("SEG", Array(1...7) + Array(10...16) + [20], segments)]

  private static let segments = """
    SEG-01 SegmentPowerTests/powerLossAfterKill
    SEG-01 SegmentPowerTests/writesDuringCompactions
    SEG-01 PowerLossTests/crashAtEveryFileCall
    SEG-02 SegmentPowerTests/durableUntilReplaced
    SEG-03 SegmentEventTests/keptWhileMoving
    SEG-04 SegmentEventTests/changedAfterMoving
    SEG-05 SegmentCopyTests/begunMeanwhile
    SEG-05 SegmentCopyTests/live
    SEG-06 BackupTests/pieces
    SEG-07 SegmentCopyTests/deletedMeanwhile
    SEG-10 SegmentEventTests/failedCondition
    SEG-11 SegmentEventTests/orphan
    SEG-12 SegmentEventTests/fullDisk
    SEG-12 SegmentEventTests/fullDiskCollects
    SEG-12 SegmentEventTests/collectionMeetsFullDisk
    SEG-13 SegmentPowerTests/zeroes
    SEG-14 ForkTests/fork
    SEG-15 SegmentDamageTests/sealed
    SEG-15 SeparationTests/confusedSegments
    SEG-16 SegmentPowerTests/markerFirst
    SEG-16 SeparationTests/notSeparated
    SEG-20 CollectionDueTests/duringCollection
    SEG-20 CollectionDueTests/removals
    SEG-20 CollectionDueTests/cursor
    SEG-20 CollectionDueTests/turnover
    """
}
