import Foundation
import HTTPTypes
import Larder
import LarderFeeds
import LarderTestSupport
import LarderTesting
import Testing

/// A feed of words over a scripted client, whose cache makes the loads.
struct SharedBench: Sendable {
  typealias Words = Loader<String, String, [String]>
  typealias Answer = ScriptedClient.Answer

  /// Fresh for an hour, then stale for a day.
  static let lifetime = Lifetime.fresh(for: .hours(1), thenStaleFor: .days(1))

  let client: ScriptedClient
  let clock = ManualClock()
  let timer = HandLoadTimer()
  let store: Store
  let words: Words

  init(
    _ order: SourceOrder, _ answers: [Answer], then last: Answer = .unexpected,
    lifetime: Lifetime = lifetime, in directory: URL? = nil,
    _ change: (inout LoadPolicy) -> Void = { $0.coalesces = true }
  ) throws {
    client = ScriptedClient(answers, then: last)
    var options = Store.Options()
    options.clock = clock
    options.loadTimer = timer.schedule
    options.random = { 0.5 }
    store =
      try directory.map { try Store(at: $0, options: options) } ?? .inMemory(options: options)
    var policy = LoadPolicy(order)
    change(&policy)
    words = Words(
      .json([String].self, at: { web("https://words.example.org/\($0)") }, { $0 }),
      client: client, cache: try store.cache("words", of: [String].self, lifetime: lifetime),
      key: { $0 }, policy: policy)
  }

  func load(_ maxAge: MaxAge? = nil) async throws -> Loaded<[String]> {
    try await words.load("a", maxAge: maxAge)
  }

  func save(_ value: String..., age: Double = 0) throws {
    try words.cache?.save(value, for: "a")
    clock.advance(by: .seconds(age))
  }

  /// The value in the cache, in any state but expired.
  func saved() throws -> [String]? {
    switch try words.cache?.lookup(for: "a") {
    case .fresh(let entry)?, .stale(let entry)?: entry.value
    case .expired?, .missing?, nil: nil
    }
  }

  /// Waits until so many loads wait for the request of another one.
  func joined(_ count: Int) async {
    while store.statistics.caches["words"]?.loads.joins != count {
      guard !Task.isCancelled else {
        Issue.record("\(count) loads have not joined")
        return
      }
      await Task.yield()
    }
  }

  /// Waits until a value is saved that a load brings in the background.
  func saves(_ value: [String]) async throws {
    while try saved() != value {
      guard !Task.isCancelled else {
        Issue.record("\(value) is not saved")
        return
      }
      await Task.yield()
    }
  }
}

extension SharedBench.Answer {
  /// A list of words with header fields, one field on each line.
  static func words(_ words: String..., fields: String = "") -> SharedBench.Answer {
    let list = words.map { "\"\($0)\"" }.joined(separator: ",")
    return .reply(200, "[\(list)]", headerFields: HTTPFields(lines: fields))
  }

  static func status(_ code: Int, fields: String = "") -> SharedBench.Answer {
    .reply(code, "", headerFields: HTTPFields(lines: fields))
  }

  static let offline = SharedBench.Answer.fail(URLError(.notConnectedToInternet))
}

extension HTTPFields {
  /// The fields of a text such as `Age: 10`, one on each line.
  init(lines: String) {
    self.init()
    for line in lines.split(separator: "\n") {
      let parts = line.split(separator: ":", maxSplits: 1)
      guard parts.count == 2, let name = HTTPField.Name(String(parts[0])) else {
        preconditionFailure("\(line) is not a header field")
      }
      append(HTTPField(name: name, value: parts[1].trimmingCharacters(in: .whitespaces)))
    }
  }
}
