import AcceptanceRows

/// The rows of the acceptance tables that the store's tests show.
enum Rows {
  /// `STO-22` is about a program that cannot open its store; the feeds' tests show it.
  static let tables = [
    AcceptanceTable("STO", Array(1...21) + [23], store),
    AcceptanceTable("TIM", Array(1...7) + Array(10...17), expiry),
    AcceptanceTable("SEG", [8, 9, 17, 18, 19, 21, 22], segments),
  ]

  private static let store = """
    STO-01 StoreTests/empty
    STO-02 StoreTests/empty
    STO-03 StoreTests/exactDates
    STO-04 StoreTests/exactDates
    STO-05 StoreTests/saves
    STO-06 StoreTests/saves
    STO-07 StoreTests/saves
    STO-08 StoreTests/removes
    STO-09 StoreTests/removes
    STO-10 StoreTests/removes
    STO-11 StoreTests/removes
    STO-12 StoreTests/undecodable
    STO-13 StoreTests/undecodable
    STO-14 WritingTests/failedWrites
    STO-15 WritingTests/failedWrites
    STO-16 WritingTests/failedWrites
    STO-17 WritingTests/failedWrites
    STO-18 WritingTests/order
    STO-19 StoreTests/reopened
    STO-20 StoreTests/optionals
    STO-21 StoreTests/twoCaches
    STO-23 StoreTests/newerSchema
    """

  private static let expiry = """
    TIM-01 LifetimeTests/calendarDays
    TIM-02 LifetimeTests/calendarDays
    TIM-03 LifetimeTests/calendarDays
    TIM-04 LifetimeTests/calendarDays
    TIM-05 LifetimeTests/calendarDays
    TIM-06 LifetimeTests/calendarDays
    TIM-07 LifetimeTests/calendarDays
    TIM-10 LifetimeTests/limit
    TIM-10 StoreTests/states
    TIM-11 LifetimeTests/limit
    TIM-11 LifetimeTests/limitOfAnyDate
    TIM-11 StoreTests/states
    TIM-12 LifetimeTests/limit
    TIM-12 StoreTests/states
    TIM-13 LifetimeTests/future
    TIM-14 LifetimeTests/unlimited
    TIM-15 LifetimeTests/daysOfUTC
    TIM-16 LifetimeTests/calendarDays
    TIM-17 LifetimeTests/refusedLimits
    """

  /// The engine's tests show the others.
  private static let segments = """
    SEG-08 SegmentSharingTests/clearedAndDropped
    SEG-09 SegmentSharingTests/tightMigration
    SEG-17 SegmentSharingTests/mixedLifetimes
    SEG-18 CompressionTests/everywhere
    SEG-18 CompressionTests/plain
    SEG-19 SegmentLossTests/everyByte
    SEG-19 FlippedBitTests/durablePayload
    SEG-19 FlippedBitTests/cutSegment
    SEG-19 FlippedBitTests/rebuild
    SEG-21 CompactTests/compact
    SEG-21 CompactTests/cancel
    SEG-21 CompactTests/beside
    SEG-22 RoomTableTests/simulated
    SEG-22 RoomTableTests/waited
    """
}
