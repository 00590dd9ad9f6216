import ArgumentParser
import Foundation
import Larder
import LarderFeeds

struct Images: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show a list of images from the server, or the last saved one if it fails.")

  @OptionGroup var options: FeedOptions

  @Option(help: "The server's URL; the list is at v1/images below it.", transform: webURL)
  var server: URL

  func run() async throws {
    try await options.run { client, store in
      try .imageFeed(at: server.appending(path: "v1/images"), client: client, store: store)
    } line: { _, image in
      words(image.description, image.location, image.url)
    }
  }
}

struct Image: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Write the bytes of an image, from the cache or else from the server.",
    discussion: """
      The source of the bytes is reported on standard error, or on standard output if --output is \
      given. Saved images are used at any age.
      """)

  @OptionGroup var cache: CacheOptions
  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var policy: PolicyOptions

  @Option(name: [.short, .long], help: "The file to write to, instead of standard output.")
  var output: String?

  @Argument(help: "The image's URL.", transform: webURL)
  var url: URL

  func validate() throws {
    guard output != nil || isatty(STDOUT_FILENO) == 0 else {
      throw ValidationError(
        "An image is not printed to a terminal. Name a file with --output, or redirect the output.")
    }
  }

  func run() async throws {
    let client = policy.reporting(connection.client)
    let (loader, place) = try cache.loader { store in
      policy.applied(to: try ImageDataLoader.imageData(client: client, store: store))
    }
    let (url, maxAge) = (url, cache.maxAge)
    policy.report(loader.cache, url, maxAge)
    let loaded = try await load(in: place) { try await loader.load(url, maxAge: maxAge) }
    let count = loaded.value.count
    let summary = "\(count) byte\(count == 1 ? "" : "s"), \(provenance(of: loaded, in: place))"
    do {
      if let output {
        try loaded.value.write(to: URL(filePath: output), options: .atomic)
        print(summary)
      } else {
        try FileHandle.standardOutput.write(contentsOf: loaded.value)
        complain(summary)
      }
    } catch {
      let place = output ?? "standard output"
      complain("\(place) could not be written: \(error.localizedDescription)")
      throw ExitCode(5)
    }
    warn(about: loaded, "the image")
  }
}
