import Foundation
import Larder
import LarderTestSupport
import Testing

@testable import LarderInspection

/// `bench` measures a machine or a store's records, and verifies what it measured.
@Suite struct BenchTests {
  private func settings() throws -> BenchSettings { try BenchSettings(rounds: 1, records: 100) }

  private func rows(_ text: String) throws -> [[String: Any]] {
    let document = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
    return try #require(document?["rows"] as? [[String: Any]])
  }

  // MARK: - A machine

  @Test("Every workload of a machine has a row.")
  func machineRows() throws {
    var text = ""
    #expect(try MachineBench.run(settings(), style: Style(.json)).write(to: &text) == .fine)

    let rows = try rows(text)
    #expect(
      rows.compactMap { $0["workload"] as? String } == [
        "fillseq", "readrandom", "readhot", "Cache.value", "Cache.value hot",
        "encode 100 feed items, directly", "decode 100 feed items, directly",
        "save 100 feed items", "retrieve 100 feed items",
      ])
    for row in rows {
      let (ours, others) = (row["larderNanoseconds"] as? Double, row["otherNanoseconds"] as? Double)
      #expect(try #require(ours) > 0 && #require(others) > 0)
    }
    #expect(text.contains("\"isOptimized\": false"), "tests are built without optimization")
  }

  @Test("A table names what each workload is compared with.")
  func comparisons() throws {
    var text = ""
    _ = try MachineBench.run(settings(), style: Style()).write(to: &text)

    let lines = text.split(separator: "\n")
    #expect(lines[0].contains("DEBUG BUILD"))
    #expect(lines.contains { $0.hasPrefix("readrandom ") && $0.hasSuffix(" LevelDB") })
    #expect(lines.contains { $0.hasPrefix("retrieve 100 feed items ") && $0.hasSuffix(" JSON") })
  }

  @Test(
    "Numbers out of their range are refused.",
    arguments: [(0, 100), (101, 100), (1, 99), (1, 10_000_001)])
  func ranges(rounds: Int, records: Int) {
    #expect { try BenchSettings(rounds: rounds, records: records) } throws: {
      ($0 as? InspectionError)?.status == .usage
    }
  }

  @Test("`bench` has no CSV format.")
  func csv() throws {
    let inspection = try Specimen().inspect()
    var text = ""
    #expect(throws: InspectionError.self) {
      try MachineBench.run(settings(), style: Style(.csv)).write(to: &text)
    }
    #expect(throws: InspectionError.self) {
      try inspection.bench(settings(), style: Style(.csv)).write(to: &text)
    }
    #expect(text.isEmpty)
  }

  // MARK: - A store

  private func measured(_ specimen: Specimen) throws -> (rows: [String: [String: Any]], Outcome) {
    var text = ""
    let outcome = try specimen.inspect().bench(settings(), style: Style(.json)).write(to: &text)
    let rows = try rows(text).map { (try #require($0["cache"] as? String), $0) }
    return (Dictionary(uniqueKeysWithValues: rows), outcome)
  }

  @Test("Every cache of a store has a row.")
  func storeRows() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    let numbers = try store.cache("numbers", of: [Int].self, keyedBy: Int.self)
    for key in 0..<300 { try numbers.save([key, key], for: key) }
    try store.close()

    let (rows, outcome) = try measured(specimen)

    #expect(outcome == .fine)
    #expect(
      rows.mapValues { $0["records"] as? Int } == [
        "genres": 5, "lists": 2, "users": 1, "blobs": 2, "numbers": 300,
      ])
    #expect(
      rows.mapValues { ($0["coders"] as? [String])?.joined() } == [
        "genres": "json", "lists": "propertyList", "users": "json", "blobs": "bytes",
        "numbers": "binary",
      ])
    for (cache, row) in rows {
      for member in ["cold", "coldLevelDB", "hot", "hotLevelDB"] {
        let time = try #require(row["\(member)Nanoseconds"] as? Double)
        #expect(time > 0, "\(cache), \(member)")
      }
      let isCoded = ["genres", "users", "numbers"].contains(cache)
      #expect((row["decodeNanoseconds"] as? Double != nil) == isCoded)
      #expect((row["encodeNanoseconds"] as? Double != nil) == isCoded)
    }
    var ttl = ""
    _ = try specimen.inspect().timeToLive(ofCache: "numbers", style: Style(.csv)).write(to: &ttl)
    let bytes = try #require(rows["numbers"]?["bytes"] as? Int)
    #expect(ttl.contains(",300,\(bytes)\n"), "`bench` and `ttl` count different bytes")
  }

  @Test("Damaged records are skipped and reported.")
  func damaged() throws {
    let specimen = try Specimen()
    try specimen.withEngine { try $0.flipByte(from: [0x10], ending: "damaged") }

    let (rows, outcome) = try measured(specimen)

    #expect(outcome == .damaged)
    #expect(rows["genres"]?["records"] as? Int == 4)
  }

  @Test("A store without records has no rows.")
  func emptyStore() throws {
    let directory = try TemporaryDirectory()
    try Specimen.open(directory.path("store")).close()
    let inspection = try Inspection(at: directory.path("store"), now: Specimen.now)
    var text = ""

    #expect(try inspection.bench(settings(), style: Style(.json)).write(to: &text) == .fine)
    #expect(try rows(text).isEmpty)
  }

  @Test("A record that changes between sampling and measuring ends the run.")
  func changedRecord() throws {
    let specimen = try Specimen()
    let inspection = try specimen.inspect()
    let directory = inspection.snapshot.path
    let key = try #require(try inspection.engine.keys(from: [0x10]).first)
    let bytes = try #require(try inspection.engine.get(key.span.bytes)).count
    try inspection.engine.close()
    func measure(_ key: [UInt8], _ storedBytes: Int) throws {
      var sample = StoreBench.Sample(cache: "any", order: 0)
      var random = WorkloadRandom(seed: 1)
      sample.add(StoreBench.SampledRecord(key: key, storedBytes: storedBytes, coder: 2), &random)
      _ = try StoreBench(directory: directory, rounds: 1, sample).run()
    }

    try measure(key, bytes)
    #expect(throws: WrongResults.self) { try measure(key, bytes + 1) }
    #expect(throws: WrongResults.self) { try measure(key + [0], bytes) }
    withExtendedLifetime(inspection) {}
  }

  @Test("A sample is drawn evenly from the whole cache.")
  func sample() {
    var sample = StoreBench.Sample(cache: "any", order: 0)
    var random = WorkloadRandom(seed: 1)
    let count = StoreBench.Sample.limit * 4
    for number in 0..<count {
      sample.add(StoreBench.SampledRecord(key: [0, 0], storedBytes: number, coder: 1), &random)
    }

    let numbers = sample.sampled.map(\.storedBytes)
    #expect(sample.records == count && sample.bytes == count * (count - 1) / 2 + 2 * count)
    #expect(Set(numbers).count == StoreBench.Sample.limit)
    for quarter in 0..<4 {
      let range = (quarter * count / 4)..<((quarter + 1) * count / 4)
      let share = numbers.count { range.contains($0) }
      #expect((400...600).contains(share), "quarter \(quarter)")
    }
  }

  // MARK: - Payloads without types

  private struct Everything: Codable {
    var numbers = [-1, 0, Int.max]
    var real = 0.25
    var small = Float(1.5)
    var truth = true
    var text = "text"
    var bytes = Data([1, 2, 3])
    var date = Specimen.now
    var id = Specimen.uuid
    var nothing: Int?
    var inner = ["a": [1.5, 2.5], "b": []]
  }

  @Test("A binary payload is encoded again as it was decoded.")
  func binaryPayload() throws {
    var buffer = ByteBuffer()
    try Binary.encode([Everything(), Everything()], into: &buffer)
    let before = Array(buffer)
    let payload = try #require(UntypedPayload(before, coder: PayloadFormat.binary.rawValue))

    let count = try payload.encode(into: &buffer)

    func json(_ bytes: [UInt8]) throws -> String {
      var text = ""
      try #require(BinaryTree.read(bytes)).write(to: &text)
      return text
    }
    #expect(count == buffer.count)
    #expect(try json(Array(buffer)) == json(before))
  }

  @Test("A JSON payload is encoded again as it was decoded.")
  func jsonPayload() throws {
    let before = Array(#"{"a":[1,2.5,null],"b":"text"}"#.utf8)
    let payload = try #require(UntypedPayload(before, coder: PayloadFormat.json.rawValue))
    var buffer = ByteBuffer()

    #expect(try payload.encode(into: &buffer) == before.count)
    #expect(UntypedPayload(Array("{".utf8), coder: PayloadFormat.json.rawValue) == nil)
    #expect(UntypedPayload(before, coder: PayloadFormat.bytes.rawValue) == nil)
  }
}
