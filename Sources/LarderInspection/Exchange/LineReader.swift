import Foundation

/// Reads a file or standard input line by line.
struct LineReader: ~Copyable {
  /// The longest line: a payload of 32 MiB in Base64, its key and its other fields.
  static let lineLimit = 64 << 20
  private static let pieceBytes = 256 << 10

  private let file: Int32
  private let path: String
  private var piece = [UInt8](repeating: 0, count: pieceBytes)
  private var unread = 0..<0
  /// The size of the file; 0 if it has none, such as a pipe.
  private var byteCount = 0
  private var bytesRead = 0
  /// The number of lines that were read.
  private(set) var count = 0

  /// Opens the file at `path`, or standard input for `-`.
  init(of path: String) throws(InspectionError) {
    self.path = path == "-" ? "standard input" : path
    guard path != "-" else {
      file = 0
      return
    }
    file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else {
      let reason = String(cString: strerror(errno))
      throw InspectionError(.unavailable, "cannot open \(path): \(reason)")
    }
    byteCount = FileAccess.bytes(of: path) ?? 0
  }

  /// The share of the file that was read; nil if it has no size.
  var share: Double? { byteCount > 0 ? Double(bytesRead) / Double(byteCount) : nil }

  deinit {
    if file > 0 { _ = close(file) }
  }

  /// The next line without its line break; nil at the end.
  mutating func next() throws(InspectionError) -> [UInt8]? {
    var line: [UInt8] = []
    while true {
      if unread.isEmpty, try !refill() {
        guard !line.isEmpty else { return nil }
        count += 1
        return line
      }
      let end = piece[unread].firstIndex(of: UInt8(ascii: "\n"))
      line += piece[unread.lowerBound..<(end ?? unread.upperBound)]
      guard line.count <= Self.lineLimit else {
        count += 1
        throw failure("it has more than \(Self.lineLimit) bytes")
      }
      unread = end.map { ($0 + 1)..<unread.upperBound } ?? 0..<0
      guard end == nil else {
        count += 1
        return line
      }
    }
  }

  /// Reads the next piece; false at the end.
  private mutating func refill() throws(InspectionError) -> Bool {
    while true {
      let count = read(file, &piece, piece.count)
      if count >= 0 {
        bytesRead += count
        unread = 0..<count
        return count > 0
      }
      guard errno == EINTR else {
        throw InspectionError(.io, "cannot read \(path): \(String(cString: strerror(errno)))")
      }
    }
  }

  /// An error about the line that was read last.
  func failure(_ message: String) -> InspectionError {
    InspectionError(.damaged, "\(path), line \(count): \(message)")
  }
}
