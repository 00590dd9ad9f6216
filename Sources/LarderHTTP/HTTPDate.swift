package import Foundation
import Larder

/// Parses a date of a header field, in any of the three forms that RFC 9110, section 5.6.7, makes
/// recipients accept; nil if it has none of them.
///
/// Letters may be of either case (RFC 9111, section 4.2). Which day of the week it names does not
/// matter.
///
/// - Parameters:
///   - text: The value of the field.
///   - now: The time that says which century a year of two digits is in: the last one in which it
///     is at most 50 years after this one.
/// - Returns: The date. Second 60, a leap second, counts as 59.
package func httpDate(_ text: String, now: Date = SystemClock().now()) -> Date? {
  let text = text.lowercased()
  for form in forms {
    for weekday in form.weekdays where text.hasPrefix(weekday) {
      guard let fields = fields(of: text.dropFirst(weekday.count), as: form.rest) else { continue }
      return date(of: fields, now: now)
    }
  }
  return nil
}

/// The form of a date that senders use (RFC 9110, section 5.6.7).
package func httpText(_ date: Date) -> String {
  let parts = calendar.dateComponents(
    [.weekday, .day, .month, .year, .hour, .minute, .second], from: date)
  func digits(_ number: Int?, _ count: Int = 2) -> String {
    let text = String(number ?? 0)
    return String(repeating: "0", count: max(0, count - text.count)) + text
  }
  let weekday = weekdays[(parts.weekday ?? 1) - 1].prefix(3).capitalized
  let month = months[(parts.month ?? 1) - 1].capitalized
  let time = [parts.hour, parts.minute, parts.second].map { digits($0) }.joined(separator: ":")
  return "\(weekday), \(digits(parts.day)) \(month) \(digits(parts.year, 4)) \(time) GMT"
}

private let weekdays = [
  "sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday",
]
private let months = [
  "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
]

/// The forms, in lower case: `D` stands for a digit of the day of the month, `d` for one or a
/// space, `N` for a letter of the month, `Y` for a digit of the year, and `H`, `M` and `S` for one
/// of the time.
private let forms = [
  (weekdays: weekdays.map { $0.prefix(3) }, rest: ", DD NNN YYYY HH:MM:SS gmt"),
  (weekdays: weekdays.map { $0[...] }, rest: ", DD-NNN-YY HH:MM:SS gmt"),
  (weekdays: weekdays.map { $0.prefix(3) }, rest: " NNN dD HH:MM:SS YYYY"),
]

/// The characters that stand in the place of each letter of a form; nil for a text of another form.
private func fields(of text: Substring, as form: String) -> [Character: String]? {
  guard text.count == form.count else { return nil }
  var fields: [Character: String] = [:]
  for (character, place) in zip(text, form) {
    switch place {
    case "N": fields["N", default: ""].append(character)
    case "d" where character == " ": break
    case "D", "d", "Y", "H", "M", "S":
      guard character.isASCII, character.isWholeNumber else { return nil }
      fields[place == "d" ? "D" : place, default: ""].append(character)
    default: guard character == place else { return nil }
    }
  }
  return fields
}

private func date(of fields: [Character: String], now: Date) -> Date? {
  func number(_ place: Character) -> Int? { fields[place].flatMap { Int($0) } }
  guard let month = months.firstIndex(of: fields["N"] ?? ""), var year = number("Y"),
    let second = number("S"), second <= 60
  else { return nil }
  if fields["Y"]?.count == 2 {
    let last = calendar.component(.year, from: now) + 50
    year = last - (last - year) % 100
  }
  let parts = DateComponents(
    calendar: calendar, year: year, month: month + 1, day: number("D"), hour: number("H"),
    minute: number("M"), second: min(second, 59))
  return parts.isValidDate ? parts.date : nil
}

private let calendar = {
  var calendar = Calendar(identifier: .gregorian)
  calendar.timeZone = .gmt
  return calendar
}()
