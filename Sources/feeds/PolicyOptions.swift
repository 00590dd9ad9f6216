import ArgumentParser
import Foundation
import HTTPTypes
import Larder
import LarderFeeds

/// A change to the policy of a feed, as a word of `--policy`.
struct PolicyWord: ExpressibleByArgument {
  private static let words: [(word: String, change: @Sendable (inout LoadPolicy) -> Void)] = [
    ("cache-first", { $0.order = .cacheThenRemote }),
    ("server-first", { $0.order = .remoteThenCache }),
    ("cache-only", { $0.order = .cacheOnly }),
    ("server-only", { ($0.order, $0.savesRemote) = (.remoteOnly, false) }),
    ("stale-on-failure", { $0.loading.staleIfError = .seconds(Int.max) }),
    ("http-caching", { $0.httpCaching = true }),
  ]

  static var allValueStrings: [String] { words.map(\.word) }

  let change: @Sendable (inout LoadPolicy) -> Void

  init?(argument: String) {
    guard let word = Self.words.first(where: { $0.word == argument }) else { return nil }
    change = word.change
  }
}

/// The options of commands whose loads have a policy.
struct PolicyOptions: ParsableArguments {
  @Option(
    help: """
      A change to the feed's policy. Can be repeated. A value is stale past its fresh time, and at \
      --max-age.
      """)
  var policy: [PolicyWord] = []

  @Flag(name: .shortAndLong, help: "Report requests, and what the cache has, on standard error.")
  var verbose = false

  /// The loader with the changed policy.
  func applied<Input, Key, Value>(
    to loader: Loader<Input, Key, Value>
  ) -> Loader<Input, Key, Value> {
    var loader = loader
    for word in policy { word.change(&loader.policy) }
    return loader
  }

  /// The client, which reports its requests if that is asked for.
  func reporting(_ client: any HTTPClient) -> any HTTPClient {
    guard verbose else { return client }
    return client.intercepted { request, body, client in
      let condition = request.headerFields.first { $0.name.canonicalName.hasPrefix("if-") }
        .map { ", \($0.name.rawName): \($0.value)" }
      let url = request.url?.absoluteString ?? request.path ?? ""
      complain("> \(request.method.rawValue) \(url)\(condition ?? "")")
      do {
        let (response, data) = try await client.send(request, body: body)
        let names: [HTTPField.Name] = [.cacheControl, .eTag]
        let fields = names.compactMap { name in
          response.headerFields[name].map { ", \(name.rawName): \($0)" }
        }
        complain("< \(response.status.code), \(data.count) bytes\(fields.joined())")
        return (response, data)
      } catch {
        complain("< no response: \(error.localizedDescription)")
        throw error
      }
    }
  }

  /// Reports what the cache has, if that is asked for.
  func report<Key, Value>(_ cache: Cache<Key, Value>?, _ key: Key, _ maxAge: MaxAge?) {
    guard verbose, let cache else { return }
    let state: String
    do {
      state =
        switch try cache.lookup(for: key) {
        case .fresh(let entry): isWithin(maxAge, entry.age) ? "fresh" : "at the maximum age"
        case .stale: "stale"
        case .expired: "expired"
        case .missing: "missing"
        }
    } catch {
      state = "not readable: \(error.localizedDescription)"
    }
    complain("the entry in the cache \(cache.name) is \(state)")
  }

  private func isWithin(_ maxAge: MaxAge?, _ age: Duration) -> Bool {
    let now = Date(timeIntervalSinceReferenceDate: 0)
    return maxAge?.admits(now - age.inSeconds, at: now) ?? true
  }
}
