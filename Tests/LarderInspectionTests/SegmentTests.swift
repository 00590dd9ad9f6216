import Foundation
import LarderEngine
import LarderInspection
import LarderTestSupport
import Testing

/// Reports of a store with segments are those of the same store without them.
@Suite struct SegmentTests {
  private static func reports(of specimen: Specimen) throws -> [String] {
    let inspection = try specimen.inspect()
    var (verified, expiring) = ("", "")
    #expect(try inspection.verify(style: Style(.json), to: &verified) == .fine)
    #expect(try inspection.timeToLive(ofCache: nil, style: Style(), to: &expiring) == .fine)
    let texts = [
      verified, expiring, try inspection.listReport(Selection(), Style(.jsonl)).0,
      try inspection.getReport("fresh").0, try inspection.getReport("damaged").0,
    ]
    return texts.map { $0.replacing(specimen.path, with: "STORE") }
  }

  @Test("`ls`, `get`, `ttl` and `verify` read values in segments.")
  func sameReports() throws {
    let separated = try Specimen(separatedValueBytes: 1)
    let names = try SystemFiles().names(in: separated.path)
    #expect(names.contains("00000001.segment"))
    #expect(try Self.reports(of: separated) == Self.reports(of: try Specimen()))
  }

  @Test("`info` shows the format, the number and the size of segments.")
  func info() throws {
    let separated = try Specimen(separatedValueBytes: 1)
    let path = "\(separated.path)/00000001.segment"
    let count = try #require(try SystemFiles().byteCount(of: path))
    let inspection = try separated.inspect()
    #expect(try inspection.infoReport(Style(.table)).0.contains("segments 1, \(count) B\n"))
    #expect(try inspection.infoReport(Style(.table)).0.contains("format   2\n"))
    #expect(
      try inspection.infoReport(Style(.jsonl)).0
        .contains("\"segments\":1,\"segmentBytes\":\(count)"))
    #expect(try !Specimen().inspect().infoReport(Style(.table)).0.contains("segments"))
  }

  @Test("`ls` and `ttl` do not read payloads in segments.")
  func heads() throws {
    let specimen = try Specimen(separatedValueBytes: 1)
    func reports() throws -> [String] {
      let inspection = try specimen.inspect()
      var expiring = ""
      #expect(try inspection.timeToLive(ofCache: nil, style: Style(), to: &expiring) == .fine)
      return [try inspection.listReport(Selection(), Style(.jsonl)).0, expiring]
    }
    let before = try reports()
    try SystemFiles().remove("\(specimen.path)/00000001.segment")
    #expect(try reports() == before)
  }

  @Test("`verify` names each record whose payload is damaged or lost, and nothing else.")
  func damage() throws {
    let specimen = try Specimen(separatedValueBytes: 1)
    let path = "\(specimen.path)/00000001.segment"
    var bytes = try SystemFiles().read(path, limit: nil)
    bytes[bytes.count - 30] ^= 1
    try SystemFiles().replace(path, with: bytes)
    var text = ""
    #expect(try specimen.inspect().verify(style: Style(), to: &text) == .damaged)
    #expect(text.contains("problems  1\n"), "\(text)")
    #expect(text.contains("; its payload is in 00000001.segment at byte "), "\(text)")
    try SystemFiles().remove(path)
    text = ""
    #expect(try specimen.inspect().verify(style: Style(), to: &text) == .damaged)
    #expect(text.contains("problems  10\n"), "\(text)")
  }
}
