import FeedServer
import Foundation
import HTTPTypes
import LarderFeeds
import Synchronization
import Testing

/// A hostile response, and the error that it must cause.
struct Hostile: Sendable, CustomTestStringConvertible {
  /// Why the client gives up; nil if the endpoint must refuse the response instead.
  enum Refusal: Hashable, Sendable { case tooLarge, timedOut, redirect, broken }

  let name: String
  let answer: Answer
  let refusal: Refusal?
  /// Whether it is faulty JSON, which is valid image data.
  var isJSON = false

  var testDescription: String { name }

  /// The expected error of the load.
  var reason: RemoteFailure.Kind { refusal == nil ? .invalidData : .connectivity }

  /// A client with limits, one of which this response exceeds.
  ///
  /// Timeouts that must not occur have their defaults, which are longer than the tests' own limit.
  var client: URLSessionClient {
    switch refusal {
    case nil: URLSessionClient.patient
    case .timedOut: URLSessionClient(resourceTimeout: .milliseconds(300))
    case .tooLarge, .redirect, .broken: URLSessionClient.patient(maximumResponseBytes: Self.limit)
    }
  }

  /// The limit of the responses that are too large.
  static let limit = 1 << 20
}

extension Hostile {
  static let all = sizes + lengths + delays + redirects + depths

  static let sizes = [
    Hostile(name: "a body without end", answer: .endless, refusal: .tooLarge),
    Hostile(name: "a chunked body over the limit", answer: .chunked(blanks), refusal: .tooLarge),
    Hostile(name: "a body over the limit", answer: body(blanks), refusal: .tooLarge),
    declared("\(8 << 30)", .tooLarge), declared("\(largest)", .tooLarge),
    Hostile(
      name: "124 MB in 780 KB, compressed",
      answer: .reply(status: 200, body: bomb, headers: ["Content-Encoding": "gzip"]),
      refusal: .tooLarge),
  ]

  static let lengths = [
    declared("-1", .broken),
    declared("many", .broken),
    Hostile(name: "a byte less than declared", answer: .wrongLength, refusal: .broken),
    Hostile(name: "a body cut in half", answer: .cut, refusal: .broken),
  ]

  static let delays = [
    // The number is too large to parse: the length counts as undeclared, and the connection stays
    // open.
    declared("9999999999999999999999", .timedOut),
    Hostile(name: "silence", answer: .silence, refusal: .timedOut),
    Hostile(name: "silence after half of it", answer: .stall, refusal: .timedOut),
    Hostile(name: "a byte at a time", answer: .drip(milliseconds: 5), refusal: .timedOut),
    Hostile(
      name: "a redirect with a body without end", answer: .redirect(to: "/", endless: true),
      refusal: .timedOut),
  ]

  static let redirects = [
    Hostile(name: "a circle of redirects", answer: .redirectLoop, refusal: .redirect),
    Hostile(
      name: "a redirect to a file", answer: .redirect(to: "file:///etc/passwd"),
      refusal: .redirect),
  ]

  /// A million levels deep: unterminated, in an item, and in an ignored field.
  static let depths = {
    func nested(_ opening: String, _ closing: String) -> String {
      repeated(opening) + "0" + repeated(closing)
    }
    func repeated(_ text: String) -> String { String(repeating: text, count: 1_000_000) }
    let unnoticed = #"{"ignored":\#(nested("[", "]")),"genres":[],"results":[],"items":[]}"#
    let item = nested(#"{"":"#, "}")
    let items = #"{"genres":[\#(item)],"results":[],"items":[\#(item)]}"#
    return [
      ("a million open lists", repeated("[")), ("an ignored field a million deep", unnoticed),
      ("an item a million deep", items),
    ].map { name, text in
      Hostile(name: name, answer: body(Data(text.utf8)), refusal: nil, isJSON: true)
    }
  }()

  private static func body(_ bytes: Data) -> Answer { .reply(status: 200, body: bytes) }

  private static func declared(_ length: String, _ refusal: Refusal) -> Hostile {
    Hostile(
      name: "\(length) bytes declared",
      answer: .reply(status: 200, body: Data("{}".utf8), headers: ["Content-Length": length]),
      refusal: refusal)
  }

  /// The largest length with which Foundation on Linux does not trap.
  ///
  /// It converts the length to a `Double` and that to an `Int64`, which traps if it was rounded to
  /// 2^63.
  private static let largest = Int64.max - 1023

  private static let blanks = Data(repeating: 0x20, count: limit + 1)

  /// An unterminated compressed body of blanks: a literal, and copies of 258 bytes each.
  static let bomb: Data = {
    let head = [1, 1, 0] + [0, 1, 0, 1, 0, 0, 0, 0]
    let copy = [1, 1, 0, 0, 0, 1, 0, 1] + [0, 0, 0, 0, 0]
    func bit(_ index: Int) -> Int {
      index < head.count ? head[index] : copy[(index - head.count) % copy.count]
    }
    func byte(_ index: Int) -> UInt8 {
      (0..<8).reduce(0) { $0 | UInt8(bit(8 * index + $1)) << UInt8($1) }
    }
    // From the third byte on, the bytes repeat every thirteen.
    let period = (2..<15).map(byte)
    var data = Data([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF, byte(0), byte(1)])
    for _ in 0..<60_000 { data.append(contentsOf: period) }
    return data
  }()
}

/// The real client, with a record of its failures.
final class WitnessClient: HTTPClient {
  private let base: URLSessionClient
  private let errors = Mutex<[any Error]>([])

  init(_ base: URLSessionClient) { self.base = base }

  /// The reasons of all failed requests.
  var refusals: [Hostile.Refusal] {
    errors.withLock { errors in
      errors.map { error in
        switch error {
        case HTTPClientError.responseTooLarge: .tooLarge
        case HTTPClientError.redirectRefused: .redirect
        case let error as URLError where error.code == .timedOut: .timedOut
        default: .broken
        }
      }
    }
  }

  func send(_ request: HTTPRequest, body: Data) async throws -> (HTTPResponse, Data) {
    do {
      return try await base.send(request, body: body)
    } catch {
      errors.withLock { $0.append(error) }
      throw error
    }
  }
}
