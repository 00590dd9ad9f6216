public import Foundation

/// The colours that an application shows its genres in.
///
/// ```swift
/// var palette = Palette { Color(hex: $0) }
/// try palette.setColors(["#C0FFEE", "BADA55"])
/// let shown = try palette.colored(genres)     // by position: c0 c1 c0 c1 ...and so on
/// ```
///
/// The library has no colours of its own, and knows no user interface: an application brings its
/// list, and the closure that makes its kind of colour from an entry. Colours are never saved.
public struct Palette<Color: Sendable>: Sendable {
  /// The entries as they were set.
  ///
  /// None at first.
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
  /// They are kept as they are written, and may repeat.
  ///
  /// - Parameter colors: At least one; each is six ASCII hexadecimal digits, of either case, and
  ///   may have one `#` before them.
  /// - Throws: Only ``PaletteError``: ``PaletteError/empty``, or
  ///   ``PaletteError/invalidColor(_:)`` for the first invalid entry. The former entries stay.
  public mutating func setColors(_ colors: [String]) throws {
    guard !colors.isEmpty else { throw PaletteError.empty }
    for color in colors where !isHexColor(color) { throw PaletteError.invalidColor(color) }
    self.colors = colors
  }

  /// The colour for a position in a list: the entries in turn.
  ///
  /// - Parameter position: Counted from 0.
  /// - Returns: The colour of the entry at `position` modulo the number of entries.
  /// - Throws: Only ``PaletteError``: ``PaletteError/empty`` when no entries were set,
  ///   ``PaletteError/negativePosition(_:)``.
  public func color(at position: Int) throws -> Color {
    guard position >= 0 else { throw PaletteError.negativePosition(position) }
    guard !colors.isEmpty else { throw PaletteError.empty }
    return color(colors[position % colors.count])
  }

  /// Gives each genre of a list the colour of its position.
  ///
  /// - Parameter genres: The list as it was loaded.
  /// - Returns: The genres in the same order. None for none, whatever the palette.
  /// - Throws: Only ``PaletteError/empty``, when no entries were set.
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

/// A genre with the colour that an application shows it in.
public struct ColoredGenre<Color: Sendable>: Sendable {
  /// The genre's number.
  public let id: Int
  /// The genre's name.
  public let name: String
  /// The colour of the genre's position in its list.
  public let color: Color
}

extension ColoredGenre: Equatable where Color: Equatable {}
extension ColoredGenre: Hashable where Color: Hashable {}

/// Why a ``Palette`` has no colour to give, or takes none.
public enum PaletteError: Error, Hashable, Sendable {
  /// There are no entries.
  case empty
  /// The entry is not six hexadecimal digits with or without a `#` before them.
  case invalidColor(String)
  /// A position is counted from 0.
  case negativePosition(Int)
}

extension PaletteError: LocalizedError, CustomStringConvertible {
  /// The same as ``description``, so that `localizedDescription` is.
  public var errorDescription: String? { description }

  /// The error as a sentence.
  public var description: String {
    switch self {
    case .empty: "The palette has no colours."
    case .invalidColor(let text): "\"\(text)\" is not a colour of six hexadecimal digits."
    case .negativePosition(let position): "There is no position \(position) in a list."
    }
  }
}
