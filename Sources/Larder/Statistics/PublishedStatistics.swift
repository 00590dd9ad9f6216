package import Foundation

/// The content of a store's file `LARDER.statistics`, as JSON.
package struct PublishedStatistics: Sendable, Codable {
  /// The version of the members; it increases when one is added, removed or changed.
  package static let version = 1

  package let larderStatistics: Int
  /// The process that has the store open.
  package let process: Int32
  /// The time by the store's clock, in seconds since 1970; nil if that is not finite.
  package let time: Double?
  /// The seconds since the store was opened.
  package let uptime: Double
  package let statistics: Statistics

  init(_ statistics: Statistics, at now: Date, uptime: Duration) {
    larderStatistics = Self.version
    process = ProcessInfo.processInfo.processIdentifier
    time = now.timeIntervalSince1970.isFinite ? now.timeIntervalSince1970 : nil
    self.uptime = uptime.inSeconds
    self.statistics = statistics
  }

  /// Reads the content of the file; nil if it is damaged or of another version.
  package init?(_ bytes: Data) {
    do {
      self = try JSONDecoder().decode(Self.self, from: bytes)
    } catch {
      return nil
    }
    guard larderStatistics == Self.version else { return nil }
  }
}

/// Publishes the statistics of an open store when they have changed.
final class StatisticsPublisher: Sendable {
  private let context: StoreContext
  private let openedAt: Duration
  private let last = Lock<Statistics?>(nil)

  init(for context: StoreContext) {
    self.context = context
    openedAt = context.clock.uptime()
  }

  func publish(_ statistics: Statistics) {
    let (now, uptime) = (context.clock.now(), context.clock.uptime() - openedAt)
    last.withLock { last in
      guard statistics != last else { return }
      do {
        let content = PublishedStatistics(statistics, at: now, uptime: uptime)
        try context.engine.publish(statistics: Array(JSONEncoder().encode(content)))
        last = statistics
      } catch {
        // No call of the program may fail for this file; the next second tries again.
      }
    }
  }
}
