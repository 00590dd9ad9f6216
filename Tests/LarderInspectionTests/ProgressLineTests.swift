import Dispatch
import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderInspection

/// Commands show how far they are, once they have taken a second.
@Suite struct ProgressLineTests {
  /// A clock that a test moves, or that moves by itself each time it is read.
  private final class Clock: Sendable {
    private struct State {
      var seconds = 100.0
      var step = 0.0
      var texts: [String] = []
    }

    private let state = Mutex(State())

    var texts: [String] { state.withLock { $0.texts } }

    init(step: Double = 0) { state.withLock { $0.step = step } }

    func set(_ seconds: Double) { state.withLock { $0.seconds = seconds } }

    func progress(whileWanted isWanted: @escaping @Sendable () -> Bool = { true }) -> ProgressLine {
      ProgressLine(now: now, whileWanted: isWanted) { line in
        self.state.withLock { $0.texts.append("<" + (line ?? "")) }
      }
    }

    private func now() -> DispatchTime {
      state.withLock { state in
        state.seconds += state.step
        return DispatchTime(uptimeNanoseconds: UInt64(state.seconds * 1e9))
      }
    }
  }

  @Test("A line is written after a second, then four times a second, and removed at the end.")
  func intervals() {
    let clock = Clock()
    let progress = clock.progress()
    func count(to seconds: Double, share: Double? = nil) {
      clock.set(100 + seconds)
      for _ in 0..<64 { _ = progress.step { share } }
    }
    count(to: 0.5)
    count(to: 0.999)
    #expect(clock.texts == [])
    count(to: 2)
    count(to: 2.2)
    count(to: 2.5, share: 0.25)
    #expect(
      clock.texts == [
        "<192 records, 96 a second", "<320 records, 128 a second, 25 %, 0:07 left",
      ])
    progress.end()
    count(to: 9)
    progress.end()
    #expect(clock.texts.suffix(1) == ["<"] && clock.texts.count == 3)
  }

  @Test("A command that takes no second writes nothing, not even at its end.")
  func short() {
    let clock = Clock()
    let progress = clock.progress()
    for _ in 0..<1000 { _ = progress.step { 0.5 } }
    progress.end()
    #expect(clock.texts == [])
  }

  @Test("The share of a scan grows to the end, also of a reversed one.", arguments: [false, true])
  func scans(isReversed: Bool) throws {
    let specimen = try largeStore()
    let clock = Clock(step: 0.5)
    let progress = clock.progress()
    let inspection = try Inspection(at: specimen.path, now: Specimen.now, progress: progress)
    var selection = Selection()
    selection.cache = "large"
    selection.isReversed = isReversed
    var report = ""
    #expect(try inspection.list(selection, style: Style(.csv)).write(to: &report) == .fine)
    let shares = clock.texts.compactMap { text in
      text.split(separator: ", ").first { $0.hasSuffix(" %") }.flatMap { Int($0.dropLast(2)) }
    }
    #expect(shares.count > 50 && shares == shares.sorted(), "\(shares)")
    #expect(shares.first ?? 100 < 20 && shares.last ?? 0 > 80)
  }

  @Test("An import shows the share of the file that was read.")
  func imports() throws {
    let specimen = try largeStore()
    var text = ""
    let inspection = try Inspection(at: specimen.path, now: Specimen.now)
    #expect(try inspection.export(Selection(), style: Style(), to: &text) == .fine)
    let path = specimen.directory.path("export")
    try Data(text.utf8).write(to: URL(filePath: path))
    let clock = Clock(step: 0.5)
    var report = ""
    _ = try Inspection.importing(
      .lines(path), to: nil, now: Specimen.now, progress: clock.progress(), style: Style()
    ).write(to: &report)
    #expect(clock.texts.count > 100)
    #expect(clock.texts.last?.contains(" 100 %, 0:00 left") == true, "\(clock.texts.suffix(1))")
  }

  @Test("A scan ends when nobody waits for its result any more.")
  func unwanted() throws {
    let specimen = try largeStore()
    let asked = Mutex(0)
    let progress = Clock().progress {
      asked.withLock { count in
        count += 1
        return count < 3
      }
    }
    let inspection = try Inspection(at: specimen.path, now: Specimen.now, progress: progress)
    var report = ""
    #expect(throws: InspectionError.self) {
      _ = try inspection.list(Selection(), style: Style(.csv)).write(to: &report)
    }
    #expect(asked.withLock { $0 } == 3)
    #expect(report.utf8.count { $0 == 0x0A } == 1 + 3 * 64 - 1)
  }
}
