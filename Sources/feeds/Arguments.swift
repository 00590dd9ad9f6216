import ArgumentParser
import Foundation
import Larder

/// Parses `7d`, `12h`, `30m` or `3600s`, and returns the seconds.
private func seconds(_ text: Substring) -> Double? {
  let units: [Character: Double] = ["d": 86_400, "h": 3600, "m": 60, "s": 1]
  guard let unit = text.last.flatMap({ units[$0] }), let count = Double(text.dropLast()) else {
    return nil
  }
  let seconds = count * unit
  // At most ten thousand years; calendars do not support later dates.
  return seconds.magnitude <= 3_650_000 * 86_400 ? seconds : nil
}

/// Parses a maximum age: a length of time, or `unlimited`.
func maximumAge(_ text: String) throws -> MaxAge {
  if text == "unlimited" { return .unlimited }
  guard let seconds = seconds(text[...]), seconds >= 0 else {
    throw ValidationError("\(text) is not an age such as 7d, 12h, 3600s or unlimited.")
  }
  return .seconds(seconds)
}

/// Parses a length of time of a second or more.
func span(_ text: String) throws -> Duration {
  guard let seconds = seconds(text[...]), seconds >= 1 else {
    throw ValidationError("\(text) is not a time such as 30s or 10m.")
  }
  return .seconds(seconds)
}

/// Parses the URL of a server.
func webURL(_ text: String) throws -> URL {
  guard let url = URL(string: text), url.host() != nil, ["http", "https"].contains(url.scheme)
  else {
    throw ValidationError("\(text) is not an http or https URL.")
  }
  return url
}

/// A clock with a fixed offset from the system's clock, or with a fixed date.
struct ShiftedClock: WallClock {
  private let system = SystemClock()
  private let shift: TimeInterval
  private let fixed: Date?

  /// Parses a date, or an offset such as `+8d`.
  init(argument text: String) throws {
    if text.hasPrefix("+") || text.hasPrefix("-"), let shift = seconds(text[...]) {
      self.shift = shift
      fixed = nil
    } else {
      do {
        fixed = try Date(text, strategy: .iso8601)
        shift = 0
      } catch {
        throw ValidationError(
          "\(text) is not a date such as 2026-01-31T12:00:00Z or an offset such as +8d.")
      }
    }
  }

  func now() -> Date { fixed ?? system.now() + shift }
  func uptime() -> Duration { system.uptime() }
}
