package import Foundation

/// How the server answers one request.
package enum Answer: Sendable, Hashable {
  /// The path's own payload, as a healthy server sends it.
  case payload
  /// This status, header and body.
  case reply(status: Int, body: Data = Data(), headers: [String: String] = [:])
  /// Status 200 and this body, without a declared length.
  case chunked(Data)
  /// The path's own payload under another status.
  case status(Int)
  /// Status 200 and JSON that ends in the middle.
  case brokenJSON
  /// Status 200 and no bytes.
  case empty
  /// Half of the payload, then the connection is closed.
  case cut
  /// A declared length of one byte more than is sent, then the connection is closed.
  case wrongLength
  /// Half of the payload, and nothing more while the server runs.
  case stall
  /// ``stall`` without a declared length.
  case stallChunked
  /// No answer while the server runs.
  case silence
  /// The payload, after a delay.
  case slow(milliseconds: Int)
  /// One byte per interval, without end.
  case drip(milliseconds: Int)
  /// Bytes without end, several megabytes a second.
  case endless
  /// A redirect to this location, with a body that never ends if `endless`.
  case redirect(to: String, endless: Bool = false)
  /// A redirect to the request's own path.
  case redirectLoop
}

extension Answer {
  /// Parses an answer from a word such as `status:503`, as in the demo's options.
  package init?(_ text: String) {
    let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
    let number = parts.count == 2 ? Int(parts[1]) : nil
    switch (parts.first, number) {
    case ("status", let code?): self = .status(code)
    case ("slow", let milliseconds?): self = .slow(milliseconds: milliseconds)
    case ("drip", let milliseconds?): self = .drip(milliseconds: milliseconds)
    case ("redirect", nil) where parts.count == 2: self = .redirect(to: parts[1])
    case (let word?, nil) where parts.count == 1:
      guard let plain = Answer.plain[word] else { return nil }
      self = plain
    default: return nil
    }
  }

  private static let plain: [String: Answer] = [
    "payload": .payload, "broken-json": .brokenJSON, "empty": .empty, "cut": .cut,
    "wrong-length": .wrongLength, "silence": .silence, "endless": .endless,
    "redirect-loop": .redirectLoop,
  ]

  /// Every word that ``init(_:)`` accepts, for a help text.
  package static var words: String {
    (plain.keys.sorted() + ["status:CODE", "slow:MS", "drip:MS", "redirect:URL"])
      .joined(separator: ", ")
  }
}
