import Larder
import Synchronization

/// The part of a tier in which machines have the entries of one cache.
struct CacheTier: RecordTier {
  let keys: SharedKeys
  let tier: SharedTier

  var clock: (any WallClock)? { tier.clock }
  var servesLocal: Bool { tier.options.whenDegraded == .serveLocal }

  func key(for userKey: some Collection<UInt8>) throws(StoreError) -> [UInt8] {
    try keys.key(for: userKey)
  }

  func read(
    _ key: [UInt8], unless version: UInt64?, arrived: @escaping @Sendable () -> Void
  ) async -> TierContent {
    let content = await ask(key, unless: version, arrived)
    tier.counts.add(content)
    return content
  }

  private func ask(
    _ key: [UInt8], unless version: UInt64?, _ arrived: @escaping @Sendable () -> Void
  ) async -> TierContent {
    do throws(SharedFailure) {
      let read = SharedRead(key)
      if let version {
        let (replies, lease) = try await tier.ask(read.versionCommand, for: key, arrived: arrived)
          .get()
        if try read.version(in: replies[0]) == version { return .same(lease) }
      }
      let (replies, lease) = try await tier.ask(read.command, for: key, arrived: arrived).get()
      switch try read.content(of: replies[0]) {
      case .absent: return .absent(tombstone: nil)
      case .unusable: return .unusable
      case .record(let record) where record.record == nil:
        return .absent(tombstone: record.version)
      case .record(let record): return .value(record, lease)
      }
    } catch {
      return .unavailable(error)
    }
  }

  func write(
    _ record: SharedRecord, under key: [UInt8], if condition: TierCondition, for stay: Duration?,
    arrived: @escaping @Sendable () -> Void
  ) async -> TierWriting {
    let writing = await put(record, key, condition, stay, arrived)
    tier.counts.add(writing)
    return writing
  }

  private func put(
    _ record: SharedRecord, _ key: [UInt8], _ condition: TierCondition, _ stay: Duration?,
    _ arrived: @escaping @Sendable () -> Void
  ) async -> TierWriting {
    let count = record.bytes.count
    guard count <= tier.options.largestRecord else {
      let failure = SharedFailure.tooLarge(bytes: count, limit: tier.options.largestRecord)
      if condition == .absent { return .removed(failure) }
      // Other machines must not continue to use the value before it.
      let tombstone = SharedRecord.tombstone(version: record.version, under: key)
      let writing = await put(tombstone, key, condition, SharedRecord.tombstoneStay, arrived)
      if case .written = writing { return .removed(failure) }
      return writing
    }
    do throws(SharedFailure) {
      let write = SharedWrite(record, under: key, if: condition, for: stay)
      let (replies, lease) = try await tier.ask(write.commands, for: key, arrived: arrived).get()
      switch try write.outcome(of: replies) {
      case .confirmed: return .written(lease)
      case .replaced: return .written(nil)
      case .refused: return .refused
      case .full: return try await remove(record, key, condition, arrived)
      }
    } catch {
      return .unavailable(error)
    }
  }

  func claimLoad(
    of key: [UInt8], seen tombstone: UInt64?, timer: LoadTimer
  ) async -> TierClaim {
    guard let span = tier.options.loadWait else { return .unclaimed }
    let claim = SharedClaim(of: key, for: span)
    let wait = KeyWait()
    // Before the questions, so that no change between their replies and the wait is missed.
    tier.begin(wait, for: key)
    defer { tier.end(wait, for: key) }
    do throws(SharedFailure) {
      let (replies, _) = try await tier.ask(claim.commands, for: key, arrived: {}).get()
      switch try claim.outcome(of: replies, seen: tombstone) {
      case .granted: return .granted
      case .changed(let hasLock):
        if hasLock { await releaseLoad(of: key) }
        return .changed
      case .held: break
      }
    } catch {
      // It may have the lock, which the others need not wait for.
      if case .outcomeUnknown = error { return .granted }
      return .unclaimed
    }
    guard case .success(let lock) = await tier.ask(claim.watching, for: key, arrived: {}),
      case .string? = lock.replies.first
    else { return .changed }
    tier.counts.awaitedLoads.add()
    let cancel = timer(span) { wait.end(.tooLong) }
    defer { cancel() }
    return await wait.outcome() == .changed ? .changed : .unclaimed
  }

  func releaseLoad(of key: [UInt8]) async {
    let claim = SharedClaim(of: key, for: .zero)
    // Without the server, the lock ends by itself.
    _ = await tier.ask(claim.release, for: key, arrived: {})
  }

  /// Removes what a full server has under a key, for which it has no memory to write.
  private func remove(
    _ record: SharedRecord, _ key: [UInt8], _ condition: TierCondition,
    _ arrived: @escaping @Sendable () -> Void
  ) async throws(SharedFailure) -> TierWriting {
    guard condition == .always else { return .unavailable(SharedFailure.full) }
    let removal: RESPCommands = ["DEL", .bytes(key)]
    let (replies, _) = try await tier.ask(removal, for: key, arrived: arrived).get()
    if case .error(let error) = replies[0] { throw .refused(error) }
    return record.record == nil ? .written(nil) : .removed(SharedFailure.full)
  }
}
