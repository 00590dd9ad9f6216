/// The budget that a refused batch would exceed.
struct Shortage: Hashable {
  /// The index of the budget in the list.
  let budget: Int
  let limit: Int
  /// The number of bytes that the batch would add.
  let growth: Int
  /// The number of bytes over the limit with the batch.
  let excess: Int
}

extension StoreError {
  /// The error of a write for which there is no room.
  init(_ shortage: Shortage) {
    self = .budgetExceeded(bytes: shortage.limit + shortage.excess, budget: shortage.limit)
  }
}
