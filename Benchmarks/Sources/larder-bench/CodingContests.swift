import Foundation
import Larder

/// The largest ratios that meet the goals: to JSON, to making the values, to copying the bytes.
struct CodingGoals {
  var encode: Double?
  var decode: Double?
  var directEncode: Double?
  var directDecode: Double?
  var floor: Double?
  var directFloor: Double?
  var copyEncode: Double?
  var copyDecode: Double?
  var directCopyEncode: Double?
  var directCopyDecode: Double?
}

extension CodingSuite {
  /// Coding of several kinds of values, against JSON, against making the values without a
  /// decoder, and against copying as many bytes.
  static func contests(_ scale: Scale) throws -> [Contest] {
    let count = operations(scale)
    var random = WorkloadRandom(seed: Scale.seed)
    // The goals were set on a machine where JSON took 338 and 463 us for the feed items, 247 and
    // 426 us for the characters, and 1372 and 2066 ns for the small struct.
    let feedItems = try feedItems(&random)
      .contests(
        count,
        CodingGoals(
          encode: 1 / 20, decode: nil, directEncode: 1 / 80, directDecode: nil,
          floor: 1.4, directFloor: 1.05), plain: { $0.map(PlainFeedItem.init) },
        floor: FeedItem.floor)
    let characters = try PayloadsOf("100 characters") {
      (0..<100).map { _ in CharacterItem(&random) }
    }
    .contests(
      count,
      CodingGoals(
        encode: 18 / 247, decode: nil, directEncode: 5 / 247, directDecode: nil,
        floor: 1.4, directFloor: 1.05), plain: { $0.map(PlainCharacter.init) },
      floor: CharacterItem.floor)
    let small = try PayloadsOf("small struct") { Small(&random) }
      .contests(
        count * 50,
        CodingGoals(
          encode: 80 / 1372, decode: 150 / 2066, directEncode: 15 / 1372, directDecode: 55 / 2066),
        plain: PlainSmall.init, floor: Small.floor)
    let blobs = try PayloadsOf("100 KB of data") { Blob(&random) }
      .contests(
        count,
        CodingGoals(
          copyEncode: 1.1, copyDecode: 1.1, directCopyEncode: 1.05, directCopyDecode: 1.05),
        plain: PlainBlob.init, copied: Blob.byteCount)
    let numbers = try PayloadsOf("2,000 numbers") { Numbers(&random) }
      .contests(
        count,
        CodingGoals(
          copyEncode: 2, copyDecode: 4, directCopyEncode: 1.5, directCopyDecode: 3),
        plain: PlainNumbers.init, copied: Numbers.byteCount)
    return feedItems + characters + small + blobs + numbers
  }
}

extension PayloadsOf {
  /// Returns a closure that makes a value from the bytes of its strings, without a decoder.
  typealias Floor = (Value) -> () -> Value

  /// The contests of these values, which are `DirectCoding`, with `count` operations per run.
  ///
  /// `plain` makes a value with the same fields whose type is only `Codable`, for the rows that are
  /// not direct.
  ///
  /// Values that are mostly bytes have a size, `copied`, and are compared with copying as many
  /// bytes. Other values are compared with `floor`, which makes them without a decoder.
  func contests<Plain: Codable & Equatable & Sendable>(
    _ count: Int, _ goals: CodingGoals, plain: (Value) -> Plain, floor: Floor? = nil,
    copied: Int? = nil
  ) throws -> [Contest] {
    func contest(
      _ name: String, _ goal: Double?, _ a: @escaping Contest.Run, _ b: @escaping Contest.Run
    ) -> Contest {
      Contest(name: name, operations: count, goal: goal, a: a, b: b)
    }
    var rest = values[...]
    let codable = try PayloadsOf<Plain>(name) { plain(rest.removeFirst()) }
    let (encodePlain, decodePlain) = (codable.encode(count), codable.decode(count))
    var contests = [
      contest("encode \(name)", goals.encode, encodePlain, codable.encodeJSON(count)),
      directEncoding(count, goal: goals.directEncode),
      contest("decode \(name)", goals.decode, decodePlain, codable.decodeJSON(count)),
      directDecoding(count, goal: goals.directDecode),
    ]
    if let floor {
      let make = try making(floor, count)
      contests += [
        contest("decode \(name), to making them", goals.floor, decodePlain, make),
        contest(
          "decode \(name), directly, to making them", goals.directFloor, decode(count), make),
      ]
    }
    if let copied {
      let copy = copying(copied, count)
      contests += [
        contest("encode \(name), to copying", goals.copyEncode, encodePlain, copy),
        contest(
          "encode \(name), directly, to copying", goals.directCopyEncode, encode(count), copy),
        contest("decode \(name), to copying", goals.copyDecode, decodePlain, copy),
        contest(
          "decode \(name), directly, to copying", goals.directCopyDecode, decode(count), copy),
      ]
    }
    return contests
  }

  private func making(_ floor: Floor, _ count: Int) throws -> Contest.Run {
    let makers = values.map(floor)
    for (value, make) in zip(values, makers) where make() != value {
      throw WrongResults(description: "\(name) made by hand is another value")
    }
    return decoding(count) { makers[$0]() }
  }

  /// Copies bytes between buffers of the same variants as the values.
  private func copying(_ size: Int, _ count: Int) -> Contest.Run {
    let source = binary
    return {
      var buffer = ByteBuffer()
      return try timed(expecting: count) {
        var right = 0
        for step in 0..<count {
          buffer.truncate(to: 0)
          source[step % CodingSuite.variants].withUnsafeBytes { bytes in
            buffer.append(UnsafeRawBufferPointer(rebasing: bytes.prefix(size)))
          }
          if buffer.count == size { right += 1 }
        }
        return right
      }
    }
  }
}
