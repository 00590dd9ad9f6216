public import Foundation

/// The colours in which an application shows its genres.
///
/// ```swift
/// var palette = Palette { Color(hex: $0) }
/// try palette.setColors(["#C0FFEE", "BADA55"])
/// let shown = try palette.colored(genres)     // by position: c0 c1 c0 c1 ...and so on
/// ```
///
/// The library has no colours of its own and does not depend on a user interface. An application
/// supplies the entries, and a closure that makes its own type of colour from an entry. Colours are
/// never saved.
public struct Palette<Color: Sendable>: Sendable {
  /// The entries as they were set; empty at first.
  public private(set) var colors: [String] = []

  private let color: @Sendable (String) -> Color

  /// Makes a palette without entries.
  ///
  /// - Parameter color: Makes a colour from an entry, which is six hexadecimal digits with or
  ///   without a `#` before them.
  public init(_ color: @escaping @Sendable (String) -> Color) {
    self.color = color
  }

  /// Replaces the entries.
  ///
  /// The entries are kept unchanged, and may repeat.
  ///
  /// - Parameter colors: At least one entry. Each is six ASCII hexadecimal digits of either case,
  ///   with or without a `#` before them.
  /// - Throws: Only ``PaletteError``: ``PaletteError/empty``, or
  ///   ``PaletteError/invalidColor(_:)`` for the first invalid entry. The old entries then remain.
  public mutating func setColors(_ colors: [String]) throws {
    guard !colors.isEmpty else { throw PaletteError.empty }
    for color in colors where !isHexColor(color) { throw PaletteError.invalidColor(color) }
    self.colors = colors
  }

  /// Returns the colour for a position in a list, using the entries in turn.
  ///
  /// - Parameter position: The position, counted from 0.
  /// - Returns: The colour of the entry at `position` modulo the number of entries.
  /// - Throws: Only ``PaletteError``: ``PaletteError/empty`` if no entries were set, or
  ///   ``PaletteError/negativePosition(_:)``.
  public func color(at position: Int) throws -> Color {
    guard position >= 0 else { throw PaletteError.negativePosition(position) }
    guard !colors.isEmpty else { throw PaletteError.empty }
    return color(colors[position % colors.count])
  }

  /// Gives each genre of a list the colour of its position.
  ///
  /// - Parameter genres: The genres, in the order in which they are shown.
  /// - Returns: The genres in the same order. An empty list needs no entries.
  /// - Throws: Only ``PaletteError/empty``, if no entries were set.
  public func colored(_ genres: [Genre]) throws -> [ColoredGenre<Color>] {
    var result: [ColoredGenre<Color>] = []
    for (position, genre) in genres.enumerated() {
      result.append(
        ColoredGenre(id: genre.id, name: genre.name, color: try color(at: position)))
    }
    return result
  }

  private func isHexColor(_ text: String) -> Bool {
    let digits = text.utf8.first == UInt8(ascii: "#") ? text.utf8.dropFirst() : text.utf8[...]
    return digits.count == 6
      && digits.allSatisfy {
        switch $0 {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
          UInt8(ascii: "A")...UInt8(ascii: "F"):
          true
        default: false
        }
      }
  }
}

/// A genre with the colour in which an application shows it.
public struct ColoredGenre<Color: Sendable>: Sendable {
  /// The server's identifier for the genre.
  public let id: Int
  /// The genre's name.
  public let name: String
  /// The colour of the genre's position in its list.
  public let color: Color
}

extension ColoredGenre: Equatable where Color: Equatable {}
extension ColoredGenre: Hashable where Color: Hashable {}

/// Why a ``Palette`` rejected its entries or a position.
public enum PaletteError: Error, Hashable, Sendable {
  /// The palette has no entries.
  case empty
  /// The entry is not six hexadecimal digits with or without a `#` before them.
  case invalidColor(String)
  /// The position is negative; positions are counted from 0.
  case negativePosition(Int)
}

extension PaletteError: LocalizedError, CustomStringConvertible {
  /// Returns ``description``, so that `localizedDescription` does too.
  public var errorDescription: String? { description }

  /// The error as a sentence.
  public var description: String {
    switch self {
    case .empty: "The palette has no colours."
    case .invalidColor(let text): "\"\(text)\" is not a colour of six hexadecimal digits."
    case .negativePosition(let position):
      "The position \(position) is negative; positions are counted from 0."
    }
  }
}
