import Foundation
import Larder

/// An item of a feed, as an app would decode it.
struct FeedItem: DirectCoding, Equatable {
  var id: UUID
  var description: String?
  var location: String?
  var url: URL

  init(_ random: inout WorkloadRandom) {
    let bits = (random.next(), random.next())
    id = withUnsafeBytes(of: bits) { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    description =
      random.next() % 4 == 0 ? nil : "A description of number \(random.next() % 1_000_000)"
    location = random.next() % 2 == 0 ? nil : "A location, \(random.next() % 10_000)"
    url = makeURL("https://a-url.example.com/images/\(id.uuidString).jpg")
  }

  init(from fields: inout FieldReader) throws {
    id = try fields.read("id")
    description = try fields.readIfPresent("description")
    location = try fields.readIfPresent("location")
    url = try fields.read("url")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(id, as: "id")
    fields.writeIfPresent(description, as: "description")
    fields.writeIfPresent(location, as: "location")
    fields.write(url, as: "url")
  }
}

func makeURL(_ text: String) -> URL {
  guard let url = URL(string: text) else { preconditionFailure("\(text) is not a URL") }
  return url
}

/// SplitMix64 (Steele, Lea, Flood 2014), which has the same sequence on every platform.
struct WorkloadRandom: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
