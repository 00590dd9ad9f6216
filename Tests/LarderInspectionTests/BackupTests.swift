import Foundation
import Larder
import LarderTestSupport
import Testing

@testable import LarderInspection

/// A backup is inspected like a store, and is not changed.
@Suite struct BackupTests {
  private func backUp(_ specimen: Specimen) throws -> String {
    let store = try Specimen.open(specimen.path)
    let path = specimen.directory.path("backup")
    try store.backup(to: URL(filePath: path))
    try store.close()
    return path
  }

  @Test("A backup is read like its store.", arguments: [true, false])
  func backup(linking: Bool) throws {
    let specimen = try Specimen()
    let path = try backUp(specimen)
    let before = try FileFacts.all(in: path)
    let inspection = try Inspection(at: path, now: Specimen.now, linking: linking)
    let info = try inspection.infoReport()
    let date = try #require(Moment.text(Specimen.now))
    #expect(info.text.contains("backup   made \(date)\n"))
    #expect(info.status == .fine)
    #expect(
      try inspection.infoReport(Style(.jsonl)).text.contains("\"backup\":{\"madeAt\":\"\(date)\"}"))
    let store = try specimen.inspect()
    #expect(try !store.infoReport().text.contains("backup "))
    #expect(try inspection.keys().map(\.key) == store.keys().map(\.key))
    var report = ""
    #expect(try inspection.verify(style: Style()).write(to: &report) == .fine)
    #expect(try FileFacts.all(in: path) == before)
  }

  @Test("`verify` names files that differ from the backup's manifest.")
  func changedBackup() throws {
    let specimen = try Specimen()
    let path = try backUp(specimen)
    try Data().write(to: URL(filePath: "\(path)/notes.txt"))
    let log = try #require(try Damage.files(in: path, endingIn: ".log").first)
    try (try Data(contentsOf: URL(filePath: log)) + [7]).write(to: URL(filePath: log))
    var report = ""
    let inspection = try Inspection(at: path, now: Specimen.now)
    #expect(try inspection.verify(style: Style()).write(to: &report) == .damaged)
    #expect(report.contains("\(path)/notes.txt is not of the backup"))
    #expect(report.contains("\(log) is damaged"))
  }

  @Test("A damaged manifest is reported, and a later format is refused.")
  func manifest() throws {
    let specimen = try Specimen()
    let path = try backUp(specimen)
    let manifest = URL(filePath: "\(path)/LARDER.backup")
    let whole = try Data(contentsOf: manifest)
    try whole.dropLast().write(to: manifest)
    let info = try Inspection(at: path, now: Specimen.now).infoReport()
    #expect(info.text.contains("damaged  \(path)/LARDER.backup is damaged\n"))
    #expect(info.status == .damaged)

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
