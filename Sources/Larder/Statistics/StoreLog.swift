import Foundation

#if Logging
  import Logging
#endif

/// Writes to the program's log what its operator should know.
///
/// With the package trait `Logging` it uses swift-log; without it, it does nothing. No message
/// contains a value.
struct StoreLog: Sendable {
  /// Damage that a read has found.
  func found(_ error: StoreError) {
    #if Logging
      guard case .corrupt(let cache, let key, let file) = error else { return }
      var metadata: Logger.Metadata = ["cache": "\(cache)"]
      if !key.isEmpty { metadata["key"] = "\(key)" }
      if let file { metadata["file"] = "\(file)" }
      logger.warning("a part of the store is damaged", metadata: metadata)
    #endif
  }

  /// What opening the store had to recover.
  func recovered(_ report: RecoveryReport) {
    #if Logging
      var metadata: Logger.Metadata = ["summary": "\(report.summary)"]
      if let aside = report.setAside { metadata["set-aside"] = "\(aside.path())" }
      logger.warning("the store was recovered when it was opened", metadata: metadata)
    #endif
  }

  /// Entries that were deleted because a byte budget had no room for a write.
  func evicted(_ entries: Int, bytes: Int, forStore isStoreBudget: Bool) {
    #if Logging
      guard entries > 0 else { return }
      logger.debug(
        "entries were evicted to make room",
        metadata: [
          "entries": "\(entries)", "bytes": "\(bytes)",
          "budget": isStoreBudget ? "store" : "cache",
        ])
    #endif
  }

  /// Values that were released because the system has little memory.
  func released(bytes: Int) {
    #if Logging
      logger.notice(
        "values were released from memory, because the system has little",
        metadata: ["bytes": "\(bytes)"])
    #endif
  }

  /// A load that has ended, which is logged if it failed or was slow.
  func loaded(_ keys: Int, of cache: String, in time: Duration, failure: (any Error)?) {
    #if Logging
      guard failure.map({ !($0 is CancellationError) }) ?? (time >= slowLoad) else { return }
      var metadata: Logger.Metadata = [
        "cache": "\(cache)", "keys": "\(keys)", "seconds": "\(time / .seconds(1))",
      ]
      if let failure { metadata["error"] = "\(failure)" }
      logger.notice(failure == nil ? "a load was slow" : "a load failed", metadata: metadata)
    #endif
  }

  #if Logging
    private let logger: Logger
    private let slowLoad: Duration

    init(_ options: Store.Options) {
      (logger, slowLoad) = (options.logger, options.slowLoad)
    }
  #else
    init(_ options: Store.Options) {}
  #endif
}
