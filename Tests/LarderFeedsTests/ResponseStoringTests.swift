import Foundation
import HTTPTypes
import LarderHTTP
import LarderTestSupport
import Testing

/// Which responses a shared cache keeps: a table, each row with the section that says so, of RFC
/// 9111 unless it names another one.
///
/// `Scripts/proof http` runs the public tests of HTTP caches, which have most of these rules and
/// many more, through a reverse proxy.
@Suite(.timeLimit(.minutes(10))) struct ResponseStoringTests {
  /// A response, and whether a second request gets it again.
  struct Rule: Sendable, CustomTestStringConvertible {
    let section: String
    var status = 200
    /// `Name: value`; lines of the same name stay lines.
    let fields: [String]
    var request: [String: String] = [:]
    let isKept: Bool

    init(
      _ section: String, _ fields: String..., status: Int = 200, to request: [String: String] = [:],
      isKept: Bool
    ) {
      (self.section, self.fields, self.status) = (section, fields, status)
      (self.request, self.isKept) = (request, isKept)
    }

    var testDescription: String { "\(section): \(status) \(fields) to \(request)" }

    var headerFields: HTTPFields {
      var result = HTTPFields()
      for field in fields {
        let pieces = field.split(separator: ":", maxSplits: 1)
        guard let name = HTTPField.Name(String(pieces[0])) else { preconditionFailure(field) }
        result.append(HTTPField(name: name, value: String(pieces[1].dropFirst())))
      }
      return result
    }
  }

  static let statuses: [Rule] = [
    Rule("3", "Cache-Control: max-age=60", isKept: true),
    Rule("3", "Cache-Control: s-maxage=60", isKept: true),
    Rule("3", isKept: false),
    Rule("3, no heuristic", "Last-Modified: \(day)", isKept: false),
    Rule("3", "Cache-Control: max-age=60", status: 299, isKept: true),
    Rule("3", "Cache-Control: max-age=60", status: 302, isKept: true),
    Rule("3", "Cache-Control: max-age=60", status: 404, isKept: true),
    Rule("3", "Cache-Control: max-age=60", status: 500, isKept: true),
    Rule("3", "Cache-Control: max-age=60", status: 503, isKept: true),
    Rule("3", "Cache-Control: max-age=60", status: 599, isKept: true),
    Rule("3", status: 503, isKept: false),
    Rule("3.3", "Cache-Control: max-age=60", status: 206, isKept: false),
    Rule("3", "Cache-Control: max-age=60", status: 304, isKept: false),
    Rule("5.2.2.3", "Cache-Control: max-age=60, no-store, must-understand", isKept: true),
    Rule(
      "5.2.2.3", "Cache-Control: max-age=60, no-store, must-understand", status: 599,
      isKept: false),
    Rule("5.2.2.3", "Cache-Control: max-age=60, must-understand", status: 599, isKept: false),
    Rule("stricter", "Cache-Control: max-age=60", "Set-Cookie: a=b", isKept: false),
  ]

  static let directives: [Rule] = [
    Rule("5.2.2.1", "Cache-Control: max-age=0", isKept: false),
    Rule("5.2.2.10", "Cache-Control: max-age=60, s-maxage=0", isKept: false),
    Rule("4.2.1", "Cache-Control: max-age=0, s-maxage=60", isKept: true),
    Rule("5.2.2.5", "Cache-Control: max-age=60, no-store", isKept: false),
    Rule("5.2.2.5", "Cache-Control: max-age=60", "Cache-Control: no-store", isKept: false),
    Rule("5.2.2.7", "Cache-Control: max-age=60, private", isKept: false),
    Rule("5.2.2.7", "Cache-Control: max-age=60, private=\"X\"", isKept: false),
    Rule("5.2.2.4", "Cache-Control: max-age=60, no-cache", isKept: false),
    Rule("5.2.2.4", "Cache-Control: max-age=60, no-cache=\"X\"", isKept: false),
    // How it is written.
    Rule("5.2", "Cache-Control: Max-Age=60, NO-STORE", isKept: false),
    Rule("5.2", "CACHE-CONTROL: mAx-aGe=60", isKept: true),
    Rule("5.2", "Cache-Control: max-age=\"60\"", isKept: true),
    Rule("5.2", "Cache-Control: max-age='60'", isKept: false),
    Rule("5.2", "Cache-Control: a=\"no-store, private\", max-age=60", isKept: true),
    Rule("5.2", "Cache-Control: a=\"x\\\", no-store, \\\"\", max-age=60", isKept: true),
    Rule("5.2", "Cache-Control: a=\", max-age=60", isKept: false),
    Rule("5.2.3", "Cache-Control: max-age=60, foobar, a=\"b\"", isKept: true),
    Rule("5.2.3", "Cache-Control: foobar", isKept: false),
    Rule("RFC 9110, 5.6.1", "Cache-Control: ,, ,max-age=60,", isKept: true),
    Rule("4.2.1", "Cache-Control: max-age=60, max-age=0", isKept: true),
    Rule("4.2.1", "Cache-Control: max-age=0, max-age=60", isKept: false),
    Rule("4.2.1", "Cache-Control: max-age=0", "Cache-Control: max-age=60", isKept: false),
    // Numbers (section 1.2.2).
    Rule("4.2.1", "Cache-Control: max-age=never", isKept: false),
    Rule("4.2.1", "Cache-Control: max-age", isKept: false),
    Rule("4.2.1", "Cache-Control: max-age=", isKept: false),
    Rule("4.2.1", "Cache-Control: max-age=-60", isKept: false),
    Rule("4.2.1", "Cache-Control: max-age=+60", isKept: false),
    Rule("4.2.1", "Cache-Control: max-age=60.5", isKept: false),
    Rule("4.2.1", "Cache-Control: max-age=60a", isKept: false),
    Rule("1.2.2", "Cache-Control: max-age=060", isKept: true),
    Rule("1.2.2", "Cache-Control: max-age=2147483648", isKept: true),
    Rule("1.2.2", "Cache-Control: max-age=99999999999999999999", isKept: true),
  ]

  static let ages: [Rule] = [
    Rule("4.2.3", "Cache-Control: max-age=60", "Age: 59", isKept: true),
    Rule("4.2.3", "Cache-Control: max-age=60", "Age: 60", isKept: false),
    Rule("5.1", "Cache-Control: max-age=60", "Age: 60, 0", isKept: false),
    Rule("5.1", "Cache-Control: max-age=60", "Age: 0, 60", isKept: true),
    Rule("5.1", "Cache-Control: max-age=60", "Age: 60", "Age: 0", isKept: false),
    Rule("1.2.2", "Cache-Control: max-age=60", "Age: 99999999999999999999", isKept: false),
    Rule("1.2.2", "Cache-Control: max-age=99999999999", "Age: 99999999999", isKept: false),
    // Invalid ones are ignored.
    Rule("5.1", "Cache-Control: max-age=60", "Age: -60", isKept: true),
    Rule("5.1", "Cache-Control: max-age=60", "Age: 60.0", isKept: true),
    Rule("5.1", "Cache-Control: max-age=60", "Age: 60;a=b", isKept: true),
    Rule("5.1", "Cache-Control: max-age=60", "Age: abc", isKept: true),
  ]

  static let expiries: [Rule] = [
    Rule("5.3", "Expires: \(later)", "Date: \(day)", isKept: true),
    Rule("5.3", "Expires: \(day)", "Date: \(day)", isKept: false),
    Rule("5.3", "Expires: \(later)", "Date: \(later)", isKept: false),
    Rule("5.3", "Cache-Control: max-age=0", "Expires: \(later)", "Date: \(day)", isKept: false),
    Rule("5.3", "Cache-Control: max-age=60", "Expires: \(day)", "Date: \(day)", isKept: true),
    Rule("4.2.3", "Expires: \(later)", "Date: \(day)", "Age: 60", isKept: false),
    Rule("5.3", "Expires: 0", "Date: \(day)", isKept: false),
    Rule("5.3", "Expires: -1", "Date: \(day)", isKept: false),
    Rule("5.3", "Expires: Sun, 18 Aug 2999 02:01:18 GMT", isKept: true),
    Rule("RFC 9110, 5.6.7", "Expires: Thursday, 18-Aug-50 02:01:18 GMT", isKept: true),
    Rule("RFC 9110, 5.6.7", "Expires: Wednesday, 18-Aug-99 02:01:18 GMT", isKept: false),
    Rule("RFC 9110, 5.6.7", "Expires: Thu Aug  8 02:01:18 2050", isKept: true),
    Rule("RFC 9110, 5.6.7", "Expires: Thu Aug 18 02:01:18 2050", isKept: true),
    Rule("4.2", "Expires: tHu, 18 aUG 2050 02:01:18 gMT", isKept: true),
  ]

  /// Dates that are none, and thus past (section 5.3).
  static let invalidDates = [
    "Thu, 18 Aug 2050 02:01:18 UTC", "Thu, 18 Aug 2050 02:01:18 +0000",
    "Thu, 18 Aug 2050 02:01:18 AEST", "Thu, 18 Aug 2050 02:01:18", "Thu, 18 Aug 50 02:01:18 GMT",
    "Thu 18 Aug 2050 02:01:18 GMT", "Thu,  18  Aug  2050 02:01:18 GMT",
    "Thu, 18-Aug-2050 02:01:18 GMT", "Thu, 18 Aug 2050 02.01.18 GMT",
    "Thu, 18 Aug 2050 2:01:18 GMT", "Thu, 8 Aug 2050 02:01:18 GMT",
    "Thursday, 18 Aug 2050 02:01:18 GMT", "Foo, 18 Aug 2050 02:01:18 GMT",
    "Thu, 32 Aug 2050 02:01:18 GMT", "Tue, 31 Feb 2050 02:01:18 GMT",
    "Thu, 18 Xyz 2050 02:01:18 GMT", "Thu, 18 Aug 2050 24:01:18 GMT",
    "Thu, 18 Aug 2050 02:60:18 GMT", "Thu, 18 Aug 2050 02:01:61 GMT",
    "Thu, 18 Aug 2050 02:01:18 GMT, Thu, 18 Aug 2050 02:01:18 GMT",
    "Thu, 1\u{301}8 Aug 2050 02:01:18 GMT", "Thu, \u{661}8 Aug 2050 02:01:18 GMT",
    "Thu Aug 8 02:01:18 2050", "Thu, +8 Aug 2050 02:01:18 GMT", "2050-08-18T02:01:18Z", "60", "",
  ].map { Rule("5.3", "Expires: \($0)", isKept: false) }

  static let requests: [Rule] = [
    Rule(
      "3.5", "Cache-Control: max-age=60", to: ["Authorization": "Basic x"], isKept: false),
    Rule(
      "3.5", "Cache-Control: max-age=60, public", to: ["Authorization": "Basic x"], isKept: true),
    Rule("3.5", "Cache-Control: s-maxage=60", to: ["Authorization": "Basic x"], isKept: true),
    Rule(
      "3.5", "Cache-Control: max-age=60, must-revalidate", to: ["Authorization": "Basic x"],
      isKept: true),
    Rule(
      "5.2.1.5", "Cache-Control: max-age=60", to: ["Cache-Control": "no-store"], isKept: false),
    Rule("4.1", "Cache-Control: max-age=60", "Vary: *", isKept: false),
    Rule("4.1", "Cache-Control: max-age=60", "Vary: Accept, *", isKept: false),
    Rule("4.1", "Cache-Control: max-age=60", "Vary: Accept", "Vary: *", isKept: false),
    Rule("4.1", "Cache-Control: max-age=60", "Vary: , Accept ,,", isKept: true),
    Rule("4.1", "Cache-Control: max-age=60", "Vary: aCCept", isKept: true),
  ]
  private static let day = ResponseCacheTests.day
  private static let later = ResponseCacheTests.later

  @Test(
    "A response is kept or not.",
    arguments: statuses + directives + ages + expiries + invalidDates + requests)
  func isKept(rule: Rule) async throws {
    let site = try ResponseCacheTests.Site()
    site.replies(rule.status, with: rule.headerFields)
    #expect(try await site.callsForTwo(rule.request) == (rule.isKept ? 1 : 2))
  }
}
