import Foundation
import Larder
import LarderTestSupport
import Testing

@testable import LarderInspection

/// `kvinspect get` shows binary payloads without their types.
@Suite struct BinaryPayloadTests {
  private struct Inner: Codable {
    var name: String
    var note: String?
  }

  private struct Everything: Codable {
    var text = "a"
    var truth = true
    var small = -1 as Int8
    var large = UInt128.max
    var ratio = 0.1 as Float
    var real = 1.5
    var none = Double.nan
    var uuid = Specimen.uuid
    var url = URL(string: "https://example.com/a")
    var date = Date(timeIntervalSinceReferenceDate: 0)
    var data = Data([1, 0xFF])
    var absent: Int?
    var null: [Int?] = [1, nil]
    var map = ["k": [1, 2]]
    var list = [Inner(name: "b"), Inner(name: "c", note: "d")]
  }

  private func withStore(_ body: (String) throws -> Void) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/store"
    let store = try Specimen.open(path)
    try store.cache("all", of: Everything.self).save(Everything(), for: "k")
    try store.close()
    try body(path)
  }

  @Test("`get` shows a binary payload as JSON.")
  func asJSON() throws {
    try withStore { path in
      let inspection = try Inspection(at: path, now: Specimen.now)
      var style = Style(.json)
      for form in [ValueForm.auto, .json] {
        style.values = form
        let text = try inspection.getReport("k", style).text
        let record = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        #expect(record?["coder"] as? String == "binary")
        let payload = try #require(record?["payload"] as? [String: Any])
        let expected = """
          {"text": "a", "truth": true, "small": -1,
          "large": 340282366920938463463374607431768211455, "ratio": 0.1, "real": 1.5,
          "none": "nan", "uuid": "\(Specimen.uuid.uuidString)", "url": "https://example.com/a",
          "date": "2001-01-01T00:00:00.000Z", "data": "0x01ff", "null": [1, null],
          "map": {"k": [1, 2]}, "list": [{"name": "b"}, {"name": "c", "note": "d"}]}
          """
        let wanted = try JSONSerialization.jsonObject(with: Data(expected.utf8))
        #expect(payload as NSDictionary == wanted as? NSDictionary)
        #expect(text.contains("340282366920938463463374607431768211455"))
      }
    }
  }

  @Test("`get --raw` writes the payload's bytes.")
  func raw() throws {
    try withStore { path in
      let inspection = try Inspection(at: path, now: Specimen.now)
      let (bytes, _) = try inspection.payload(of: "k", cache: nil, keys: .auto)
      #expect(bytes.first == 1)
      #expect(BinaryTree.read(bytes) != nil)
      let temporary = try TemporaryDirectory()
      let run = try Kvinspect(["get", path, "k", "--raw"], temporary: temporary.path)
      #expect(try run.finish().bytes == Data(bytes))
    }
  }

  @Test("An invalid payload is shown in hexadecimal.")
  func invalidPayload() throws {
    var text = ""
    PayloadView([1, 2, 3], coder: 1, as: .json).write(to: &text)
    #expect(text.contains("01 02 03"))
  }
}
