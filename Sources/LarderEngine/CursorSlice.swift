/// How long a cursor reads one state before it goes on in a newer one.
///
/// The state that a LevelDB iterator reads keeps files from being deleted and memory from being
/// freed, so a scan that takes hours must not read one state all the time.
package struct CursorSlice {
  /// The longest time, however few entries it was.
  package static let seconds = 10

  private var stepsLeft: Int
  private let end: Int

  package init(entries: Int, now: Int) {
    stepsLeft = entries
    end = now + CursorSlice.seconds
  }

  /// Counts a step, and returns whether the slice had room for it.
  package mutating func admitsStep(now: Int) -> Bool {
    guard stepsLeft > 0, now < end else { return false }
    stepsLeft -= 1
    return true
  }

  /// Counts as many of `count` steps as the slice has room for, and returns how many.
  mutating func takeSteps(upTo count: Int) -> Int {
    let taken = min(count, stepsLeft)
    stepsLeft -= taken
    return taken
  }
}
