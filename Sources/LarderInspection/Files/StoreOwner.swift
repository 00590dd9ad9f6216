import Foundation
import Larder

/// The process that has a store open, or that exited without closing it.
struct StoreOwner: CustomStringConvertible {
  let pid: Int32
  let isRunning: Bool

  /// Reads the guard file; nil if the store is closed.
  init?(of path: String) throws(InspectionError) {
    let file = "\(path)/\(StoreMarker.guardFileName)"
    guard let bytes = try FileAccess.read(file, limit: 32) else { return nil }
    let line = bytes.prefix { $0 != UInt8(ascii: "\n") }
    guard let pid = Int32(String(decoding: line, as: UTF8.self)), pid > 0 else { return nil }
    self.pid = pid
    isRunning = FileAccess.isRunning(pid)
  }

  var description: String {
    isRunning ? "process \(pid)" : "process \(pid), which exited without closing the store"
  }
}

/// The file of statistics that an open store publishes.
struct StatisticsRecord {
  /// Nil if the file is damaged, or another version of this library wrote it.
  let statistics: PublishedStatistics?
  /// The file's document; nil if it is not JSON.
  let document: JSONValue?
  /// Whether the process that wrote it has the store open now.
  let isLive: Bool

  /// Reads the file in a store's directory; nil if there is none.
  init?(of path: String) throws(InspectionError) {
    // The owner is read before and after: a store that is closed and opened again meanwhile
    // belongs to neither.
    let owner = try StoreOwner(of: path)
    guard let bytes = try FileAccess.read("\(path)/\(StatisticsFile.name)") else { return nil }
    let later = try StoreOwner(of: path)
    statistics = PublishedStatistics(Data(bytes))
    document = JSONReader.read(bytes)
    isLive =
      owner?.isRunning == true && owner?.pid == statistics?.process && later?.pid == owner?.pid
  }

  /// The statistics; nil unless the process that has the store open now wrote them.
  var live: PublishedStatistics? { isLive ? statistics : nil }
}
