// The program of the article "Adding a feed", which must say the same: see ArticleTests.swift.
import Foundation
import Larder
import LarderFeeds

// The model, which the application uses and the cache stores.
struct Station: Codable, Hashable, Sendable {
  var id: Int
  var name: String
  var stream: URL
}

// The server's payload. Its field names appear nowhere else.
private struct RemoteStations: Decodable {
  struct Item: Decodable {
    var id: Int
    var title: String
    var stream_url: URL
  }
  var stations: [Item]
  var models: [Station] {
    stations.map { Station(id: $0.id, name: $0.title, stream: $0.stream_url) }
  }
}

// The country is the input of a load, and the key in the cache.
typealias StationsLoader = Loader<String, String, [Station]>

extension Loader where Input == String, Key == String, Value == [Station] {
  static func stations(
    from base: URL, client: any HTTPClient, store: Store
  ) throws -> StationsLoader {
    var policy = LoadPolicy(.cacheThenRemote)
    policy.loading.maxAge = .hours(1)
    policy.loading.staleIfError = .seconds(30 * 86_400)
    policy.loading.softTimeout = .seconds(3)
    policy.loading.retries = Loading.Retries(extra: 2)
    policy.retriesAfter = [.connectivity]
    return StationsLoader(
      .json(
        RemoteStations.self, at: { base.appending(path: "stations/\($0)") }, \.models),
      client: client,
      cache: try store.cache("stations", of: [Station].self, lifetime: .days(30)),
      key: { $0 }, policy: policy)
  }
}
