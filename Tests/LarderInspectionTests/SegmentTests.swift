import Foundation
import Larder
import LarderInspection
import LarderTestSupport
import Testing

/// Reports of a store with segments are those of the same store without them.
@Suite struct SegmentTests {
  private static func reports(of specimen: Specimen) throws -> [String] {
    let inspection = try specimen.inspect()
    var (verified, expiring) = ("", "")
    #expect(try inspection.verify(style: Style(.json)).write(to: &verified) == .fine)
    #expect(try inspection.timeToLive(ofCache: nil, style: Style()).write(to: &expiring) == .fine)
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
      #expect(try inspection.timeToLive(ofCache: nil, style: Style()).write(to: &expiring) == .fine)
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
    #expect(try specimen.inspect().verify(style: Style()).write(to: &text) == .damaged)
    #expect(text.contains("problems  1\n"), "\(text)")
    #expect(text.contains("; its payload is in 00000001.segment at byte "), "\(text)")
    try SystemFiles().remove(path)
    text = ""
    #expect(try specimen.inspect().verify(style: Style()).write(to: &text) == .damaged)
    #expect(text.contains("problems  10\n"), "\(text)")
  }

  @Test("`verify` and `doctor` say which writes an opening would set aside, and it does.")
  func lostWrites() throws {
    let directory = try TemporaryDirectory()
    let (path, copy) = (directory.path("store"), directory.path("killed"))
    let store = try Specimen.open(path, separatedValueBytes: 100)
    let images = try store.cache("images", of: [UInt8].self, keyedBy: Int.self, coder: .bytes)
    for number in 1...3 as ClosedRange<UInt8> {
      try images.save([UInt8](repeating: number, count: 1000), for: Int(number))
    }
    try store.flush()
    for number in 4...8 as ClosedRange<UInt8> {
      try images.save([UInt8](repeating: number, count: 1000), for: Int(number))
    }
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    try store.close()
    let segment = "\(copy)/00000001.segment"
    let bytes = try SystemFiles().read(segment, limit: nil)
    let place = try #require(bytes.firstRange(of: [UInt8](repeating: 6, count: 100)))
    try Damage.flipByte(at: place.lowerBound + 900, of: segment)

    func verified() throws -> (text: String, status: Outcome) {
      var text = ""
      let status = try Inspection(at: copy, now: Specimen.now).verify(style: Style()).write(
        to: &text)
      return (text, status)
    }
    let (text, status) = try verified()
    #expect(status == .damaged && text.contains("problems  1\n"), "\(text)")
    #expect(text.contains("the payload of the row in \(copy)/"), "\(text)")
    #expect(text.contains(" is missing or damaged in 00000001.segment, byte "), "\(text)")
    #expect(
      text.contains("opening the store sets aside this write and all later ones, at least 3"),
      "\(text)")
    #expect(text.contains("records   5\n"), "\(text)")
    for isDeep in [false, true] {
      var advice = ""
      let status = try Inspection.doctor(
        copy, now: Specimen.now, isDeep: isDeep, style: Style()
      ).write(to: &advice)
      #expect(status == .damaged && advice.contains("sets aside this write"), "\(advice)")
    }

    let opened = try Specimen.open(copy, separatedValueBytes: 100)
    #expect(opened.recovery != nil)
    try opened.close()
    let (after, outcome) = try verified()
    #expect(outcome == .fine && after.contains("records   5\n"), "\(after)")
  }

  @Test("`verify` names the records of a segment that was cut after a clean close.")
  func cutSegment() throws {
    let specimen = try Specimen(separatedValueBytes: 1)
    let path = "\(specimen.path)/00000001.segment"
    let bytes = try SystemFiles().read(path, limit: nil)
    for count in [0, bytes.count / 2, bytes.count - 1] {
      try SystemFiles().replace(path, with: Array(bytes.prefix(count)))
      var text = ""
      let status = try specimen.inspect().verify(style: Style()).write(to: &text)
      #expect(text.contains("records   10\n"), "\(text)")
      #expect((status == .fine) == (count == bytes.count - 1), "\(text)")
      #expect(!text.contains("sets aside"), "\(text)")
    }
  }
}
