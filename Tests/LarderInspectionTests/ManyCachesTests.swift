import Foundation
import Larder
import LarderTestSupport
import Testing

@testable import LarderInspection

/// Commands tell caches apart by the bytes of their names, however many there are.
@Suite struct ManyCachesTests {
  @Test("Two stores whose caches have names that are equal as texts have no cache in common.")
  func comparison() throws {
    let specimens = try ["caf\u{E9}", "cafe\u{301}"].map { name in
      let specimen = try Specimen()
      let store = try Specimen.open(specimen.path)
      try store.cache(name, of: Int.self).save(1, for: "key")
      try store.close()
      return specimen
    }
    let (first, second) = (try specimens[0].inspect(), try specimens[1].inspect())
    var text = ""
    let report = try first.differences(from: second, inCache: nil, style: Style(.csv))
    #expect(try report.write(to: &text) == .different)
    let lines = text.split(separator: "\n").filter { $0.contains(",caf") }
      .map { Array($0.utf8) }
    #expect(
      lines == [
        Array("only in the second,cafe\u{301},key".utf8),
        Array("only in the first,caf\u{E9},key".utf8),
      ])
  }

  @Test("The time for a cache does not depend on how many there are.")
  func manyCaches() throws {
    let times = try [500, 4000].map { count in
      let specimen = try Specimen()
      let store = try Specimen.open(specimen.path)
      for number in 0..<count {
        try store.cache("cache \(number)", of: Int.self).save(number, for: "key")
      }
      try store.close()
      let inspection = try specimen.inspect()
      return try threadTime {
        var text = ""
        let sizes = try inspection.statistics(of: Selection(), style: Style(.csv))
        #expect(try sizes.write(to: &text) == .fine)
        let differences = try inspection.differences(
          from: inspection, inCache: nil, style: Style(.csv))
        #expect(try differences.write(to: &text) == .fine)
        #expect(text.split(separator: "\n").count > count)
      }
    }
    // Eight times as many take eight times as long, and 64 times if each looks at all others.
    #expect(times[1] < 24 * times[0], "\(times)")
  }
}
