import ArgumentParser
import Foundation
import Larder
import LarderFeeds

struct Validate: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Delete expired and unreadable values of all feeds from a store.")

  @OptionGroup var cache: CacheOptions

  func run() async throws {
    let client = ConnectionOptions.offlineClient
    let nowhere = URL(filePath: "/")
    do {
      let store = try cache.open()
      try validate("genres", GenresLoader.genres(from: nowhere, client: client, store: store))
      try validate("characters", CharactersLoader.characters(client: client, store: store))
      try validate(
        "essential-feed",
        EssentialFeedLoader.essentialFeed(at: nowhere, client: client, store: store))
      try validate(
        "image-feed", ImageFeedLoader.imageFeed(at: nowhere, client: client, store: store))
      try validate("image-data", ImageDataLoader.imageData(client: client, store: store))
      try store.close()
    } catch {
      complain("The store at \(cache.store) could not be validated: \(error)")
      throw ExitCode(4)
    }
  }

  private func validate<Input, Key, Value>(
    _ name: String, _ loader: Loader<Input, Key, Value>
  ) throws {
    guard let report = try loader.validate(maxAge: cache.maxAge) else { return }
    let kept = report.kept + report.newer
    print("\(name): \(report.expired + report.unreadable) deleted, \(kept) kept")
  }
}
