import Dispatch
import Foundation
import Larder
import LarderTestSupport
import Testing

@testable import LarderInspection

/// Commands show how far they are, once they have taken a second.
@Suite struct ProgressLineTests {
  /// A clock that a test moves, or that moves by itself each time it is read.
  private final class Clock {
    var seconds = 100.0
    var step = 0.0
    private(set) var texts: [String] = []

    func progress() -> ProgressLine {
      ProgressLine(now: {
        self.seconds += self.step
        return DispatchTime(uptimeNanoseconds: UInt64(self.seconds * 1e9))
      }) { self.texts.append($0.replacing("\r\u{1B}[K", with: "<")) }
    }
  }

  @Test("A line is written after a second, then four times a second, and removed at the end.")
  func intervals() {
    let clock = Clock()
    let progress = clock.progress()
    func count(to seconds: Double, share: Double? = nil) {
      clock.seconds = 100 + seconds
      for _ in 0..<64 { progress.step { share } }
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
    for _ in 0..<1000 { progress.step { 0.5 } }
    progress.end()
    #expect(clock.texts == [])
  }

  @Test("The share of a scan grows to the end, also of a reversed one.", arguments: [false, true])
  func scans(isReversed: Bool) throws {
    let specimen = try largeStore()
    let clock = Clock()
    clock.step = 0.5
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
    let clock = Clock()
    clock.step = 0.5
    var report = ""
    _ = try Inspection.importing(
      .lines(path), to: nil, now: Specimen.now, progress: clock.progress(), style: Style()
    ).write(to: &report)
    #expect(clock.texts.count > 100)
    #expect(clock.texts.last?.contains(" 100 %, 0:00 left") == true, "\(clock.texts.suffix(1))")
  }
}
