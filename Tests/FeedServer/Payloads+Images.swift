package import Foundation

/// The two feeds of images, which differ only in their fields' values, and the images.
extension Payloads {
  package static let feedCount = 60
  package static let imageCount = 60

  package struct Image: Encodable, Sendable {
    package var id: String
    package var description: String?
    package var location: String?
    package var image: String
    package var likes: Int
  }

  /// The items in the order in which the server sends them; some lack a text.
  package static let feed: [Image] = (1...feedCount).map {
    image($0, "0E55", at: "https://img.example.org/feed/\($0).png")
  }

  /// Images whose bytes are below `base`.
  package static func images(at base: String) -> [Image] {
    (1...imageCount).map { image($0, "1A9E", at: base + FeedServer.imagePath($0)) }
  }

  /// An image of one pixel; nil if there is no image with this number.
  ///
  /// The bytes differ for each number, after the end of the PNG, where decoders ignore them.
  package static func imageBytes(_ number: Int) -> Data? {
    guard (1...imageCount).contains(number), let pixel = Data(base64Encoded: pixel) else {
      return nil
    }
    return pixel + Data("image \(number)".utf8)
  }

  static func feedJSON() throws -> Data { try encode(Root(items: feed)) }

  static func imagesJSON(at base: String) throws -> Data {
    try encode(Root(items: images(at: base)))
  }

  private struct Root: Encodable {
    var items: [Image]
    var took_ms = 4
  }

  private static func image(_ number: Int, _ group: String, at url: String) -> Image {
    let digits = String(number + 0x1000, radix: 16)
    return Image(
      id: "0f3c2b52-\(group)-4d0b-9b0e-3c1c2d7e\(digits)",
      description: number % 5 == 0 ? nil : "\(subjects[number % subjects.count]), no. \(number)",
      location: number % 3 == 0 ? nil : spots[number % spots.count], image: url, likes: number * 7)
  }

  private static let subjects = ["Fog over the harbour", "Night market", "Old signal box", "Heron"]
  private static let spots = ["Quay 7, Lindhaven", "North ridge", "Mill lane"]
  private static let pixel =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    + "AAAADUlEQVR42mPQqzX6DwADlwHdE7hLNwAAAABJRU5ErkJggg=="
}
