import Foundation
import Larder

/// The first records of a selection, in another order than by key.
struct Ranking {
  private let order: RecordOrder
  private let isReversed: Bool
  private let limit: Int
  private var records: [(rank: Double, place: Int, record: FoundRecord)] = []
  private var seen = 0

  init(_ selection: Selection) {
    order = selection.order
    isReversed = selection.isReversed
    limit = selection.limit ?? .max
  }

  /// Adds a record; records are added in the order of their keys.
  mutating func add(_ record: FoundRecord) {
    records.append((rank(of: record), seen, record))
    seen += 1
    // Sorted so seldom that a record costs little more than a comparison.
    if records.count / 2 > max(limit, 1000) { cut() }
  }

  /// The first records, in order.
  mutating func ranked() -> [FoundRecord] {
    cut()
    return records.map(\.record)
  }

  private mutating func cut() {
    records.sort { ($0.rank, $0.place) < ($1.rank, $1.place) }
    records.removeLast(max(0, records.count - limit))
  }

  /// The rank of a record; lower ones come first.
  ///
  /// Records without a date come last, in both directions.
  private func rank(of found: FoundRecord) -> Double {
    let rank = value(of: found)
    guard rank < .greatestFiniteMagnitude else { return .infinity }
    return isReversed ? -rank : rank
  }

  private func value(of found: FoundRecord) -> Double {
    if order == .size { return -Double(found.entryBytes) }
    guard case .success(let record) = found.content else { return .nan }
    let date = order == .age ? record.savedAt : found.expiry(of: record) ?? .distantFuture
    return date.timeIntervalSinceReferenceDate
  }
}
