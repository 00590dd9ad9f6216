import Foundation

extension Store {
  /// Accepts commands of other processes, see ``Options/control``.
  func acceptCommands() throws(StoreError) {
    @Sendable func line(_ kind: ControlFailure.Kind, _ message: String) -> [UInt8] {
      ControlReply.failed(ControlFailure(kind, message)).line
    }
    let service = ControlService(
      greeting: ControlReply.ready(version: ControlReply.version).line,
      refusal: line(.busy, "too many commands are under way"),
      objection: line(.invalid, "the request is too long"), timer: context.loadTimer
    ) { [weak self] request, reply in
      guard let self else {
        return reply(ControlReply.failed(ControlFailure(StoreError.closed)).line)
      }
      guard let request = ControlRequest(line: request) else {
        return reply(
          line(.unsupported, "the request is not one of version \(ControlReply.version)"))
      }
      // Swift's own threads may all be blocked by the program.
      Task(executorPreference: executor) { reply(await self.answer(request).line) }
    }
    try context.engine.acceptCommands(for: service)
  }

  private func answer(_ request: ControlRequest) async -> ControlReply {
    do {
      switch request {
      case .remove(let cache, let key):
        return .removed(try await run { try remove(Array(key), fromCache: cache) })
      case .invalidate(let tag):
        try await run { try invalidate(tag: tag) }
        return .invalidated
      case .sweep: return .swept(entries: try await run { try sweep() })
      case .compact: return .compacted(try await compact())
      case .releaseMemory(let bytes):
        try context.engine.checkOpen()
        let before = statistics.memory.bytes
        releaseMemory(to: bytes)
        return .released(from: before, to: statistics.memory.bytes)
      }
    } catch {
      return .failed(ControlFailure(error))
    }
  }

  /// Removes the entry under a key of a cache, which need not be open, and returns whether there
  /// was one.
  private func remove(_ key: [UInt8], fromCache name: String) throws(StoreError) -> Bool {
    let registration = try withRegistry { registry throws(StoreError) in
      try registry.registration(of: name)
    }
    guard let registration else { return false }
    let isRemoved = try remove(RecordKey(cacheID: registration.id, userKey: key))
    if isRemoved { context.counts.ofCache(name).removals.add() }
    return isRemoved
  }
}
