import Foundation
import Larder

/// A type that is only `Codable` and holds a list of `DirectCoding` values.
struct Page: Codable, Sendable, Equatable {
  var title = "A page of a feed"
  var next: Int?
  var items: [FeedItem]
}

/// A type that is only `Codable` and holds one `DirectCoding` value.
struct Row: Codable, Sendable, Equatable {
  var position: Int
  var item: FeedItem
}

/// An enum with payloads.
enum Media: Codable, Sendable, Equatable {
  case image(URL)
  case video(URL, seconds: Int)
  case text(title: String, body: String?)
  case nothing

  init(_ random: inout WorkloadRandom) {
    switch random.next() % 4 {
    case 0: self = .image(FeedItem(&random).url)
    case 1: self = .video(FeedItem(&random).url, seconds: Int(random.next() % 1000))
    case 2:
      let item = FeedItem(&random)
      self = .text(title: item.description ?? "A title", body: item.location)
    default: self = .nothing
    }
  }
}
