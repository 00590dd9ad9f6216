import Foundation
import Larder
import LarderEngine
import LarderTestSupport
import Testing

@testable import LarderInspection

/// Looking into a backup, which stays as it is.
@Suite struct BackupTests {
  private func backUp(_ specimen: Specimen) throws -> String {
    let store = try Specimen.open(specimen.path)
    let path = specimen.directory.path("backup")
    try store.backup(to: URL(filePath: path))
    try store.close()
    return path
  }

  @Test(arguments: [true, false])
  func aBackupIsReadLikeItsStore(linking: Bool) throws {
    let specimen = try Specimen()
    let path = try backUp(specimen)
    let before = try FileFacts.all(in: path)
    let inspection = try Inspection(at: path, now: Specimen.now, linking: linking)
    let told = try inspection.told()
    let date = try #require(Moment.text(Specimen.now))
    #expect(told.text.contains("backup   made \(date)\n"))
    #expect(told.status == .fine)
    #expect(try inspection.told(Style(.jsonl)).text.contains("\"backup\":{\"madeAt\":\"\(date)\"}"))
    let store = try specimen.inspect()
    #expect(try !store.told().text.contains("backup "))
    #expect(try inspection.keys().map(\.key) == store.keys().map(\.key))
    var report = ""
    #expect(try inspection.verify(style: Style(), to: &report) == .fine)
    #expect(try FileFacts.all(in: path) == before)
  }

  @Test func verifyNamesWhatIsNotAsItWasBackedUp() throws {
    let specimen = try Specimen()
    let path = try backUp(specimen)
    try Data().write(to: URL(filePath: "\(path)/notes.txt"))
    let log = try #require(try Damage.files(in: path, endingIn: ".log").first)
    try (try Data(contentsOf: URL(filePath: log)) + [7]).write(to: URL(filePath: log))
    var report = ""
    let inspection = try Inspection(at: path, now: Specimen.now)
    #expect(try inspection.verify(style: Style(), to: &report) == .damaged)
    #expect(report.contains("\(path)/notes.txt is not of the backup"))
    #expect(report.contains("\(log) is damaged"))
  }

  @Test func aDamagedManifestIsToldAndALaterOneIsRefused() throws {
    let specimen = try Specimen()
    let path = try backUp(specimen)
    let manifest = URL(filePath: "\(path)/LARDER.backup")
    let whole = try Data(contentsOf: manifest)
    try whole.dropLast().write(to: manifest)
    let told = try Inspection(at: path, now: Specimen.now).told()
    #expect(told.text.contains("damaged  \(path)/LARDER.backup is damaged\n"))
    #expect(told.status == .damaged)

    let lines = "larder-backup 2\nstore 1\ndate 0.0\n"
    try Data("\(lines)crc32c \(checksum(lines))\n".utf8).write(to: manifest)
    #expect {
      try Inspection(at: path, now: Specimen.now)
    } throws: { outcome(of: $0) == .unsupported }
  }

  private func checksum(_ text: String) -> String {
    String(format: "%08x", Array(text.utf8).withUnsafeBytes { crc32c($0) })
  }
}
