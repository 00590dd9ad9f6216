/// The time for which a cursor reads one state before it continues in a newer one.
///
/// A LevelDB iterator keeps the files and the memory of its state alive, so a scan of hours must
/// not read one state all the time.
package struct CursorSlice {
  /// The longest time, regardless of the number of entries.
  package static let seconds = 10

  private var stepsLeft: Int
  private let end: Int

  package init(entries: Int, now: Int) {
    stepsLeft = entries
    end = now + CursorSlice.seconds
  }

  /// Counts a step; returns false if the slice has ended.
  package mutating func admitsStep(now: Int) -> Bool {
    guard stepsLeft > 0, now < end else { return false }
    stepsLeft -= 1
    return true
  }

  /// Counts up to `count` steps, as many as are left, and returns their number.
  mutating func takeSteps(upTo count: Int) -> Int {
    let taken = min(count, stepsLeft)
    stepsLeft -= taken
    return taken
  }
}
