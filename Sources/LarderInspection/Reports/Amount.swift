/// Numbers and sizes as people read them, for tables; JSON and CSV have plain digits.
enum Amount {
  /// A number with commas between thousands.
  static func text(_ number: Int) -> String {
    let digits = "\(number.magnitude)"
    var text = ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index) % 3 == 0 { text += "," }
      text.append(digit)
    }
    return (number < 0 ? "-" : "") + text
  }

  /// A size in decimal units, such as `512 B` or `199.7 MB`, rounded to the nearest tenth.
  static func bytes(_ count: Int) -> String {
    guard count >= 1000 else { return "\(count) B" }
    // Tenths of the unit below. A damaged file may state any size.
    var tenths = 10 * Int128(count)
    for unit in ["KB", "MB", "GB", "TB"] {
      tenths = (tenths + 500) / 1000
      if tenths < 10_000 { return "\(tenths / 10).\(tenths % 10) \(unit)" }
    }
    return "\(text(Int((tenths + 500) / 10_000))) PB"
  }

  /// A share in per cent, rounded to the nearest tenth.
  static func share(_ part: Int, of whole: Int) -> String {
    guard whole > 0 else { return "-" }
    let tenths = (Int128(part) * 1000 + Int128(whole / 2)) / Int128(whole)
    return "\(tenths / 10).\(tenths % 10) %"
  }
}
