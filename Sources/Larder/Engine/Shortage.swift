/// The budget that a refused batch would exceed.
package struct Shortage: Hashable, Sendable {
  /// The index of the budget in the list.
  package let budget: Int
  package let limit: Int
  /// The number of bytes that the batch would add.
  package let growth: Int
  /// The number of bytes over the limit with the batch.
  package let excess: Int

  package init(budget: Int, limit: Int, growth: Int, excess: Int) {
    (self.budget, self.limit, self.growth, self.excess) = (budget, limit, growth, excess)
  }
}

extension StoreError {
  /// The error of a write for which there is no room.
  init(_ shortage: Shortage) {
    self = .budgetExceeded(bytes: shortage.limit + shortage.excess, budget: shortage.limit)
  }
}
