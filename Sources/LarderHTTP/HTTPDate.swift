package import Foundation

/// Parses a date of a header field, in any of the three forms that RFC 9110, section 5.6.7, makes
/// recipients accept; nil if it has none of them.
package func httpDate(_ text: String) -> Date? {
  for formatter in formatters {
    if let date = formatter.date(from: text) { return date }
  }
  return nil
}

// `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT`, `Sun Nov  6 08:49:37 1994`
private let formatters = [
  "EEE, dd MMM yyyy HH:mm:ss 'GMT'", "EEEE, dd-MMM-yy HH:mm:ss 'GMT'", "EEE MMM d HH:mm:ss yyyy",
].map { format in
  let formatter = DateFormatter()
  formatter.locale = Locale(identifier: "en_US_POSIX")
  formatter.timeZone = .gmt
  formatter.isLenient = false
  formatter.dateFormat = format
  return formatter
}
