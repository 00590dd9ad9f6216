import Dispatch
import Synchronization

/// Syncs segments on a thread of its own while the leader appends to them, so that few writes wait
/// for the device.
final class SegmentSync: Sendable {
  /// A segment to sync.
  struct Request {
    let number: UInt32
    let file: any StoreFile
    /// Where the frames end that are to be synced.
    let end: Int
    /// Whether nothing more is appended to the segment: it is sealed then.
    let isLast: Bool
  }

  private struct State {
    /// The requests that are not done, the one under way first.
    var requests: [Request] = []
    /// The newest segment whose name is on the device; the names of older ones are, too.
    var namedSegment: UInt32 = 0
    var failure: StoreError?
  }

  private let directory: String
  private let files: any StoreFiles
  private let hasThread: Bool
  private let state = Lock(State())
  private let synced: Atomic<UInt64>
  private let thread = DispatchGroup()

  /// With `hasThread` false, the caller of ``begin(_:)`` does the work.
  ///
  /// All frames before `place` are on the device.
  init(
    in directory: String, _ files: any StoreFiles, after place: SyncedPlace, hasThread: Bool
  ) {
    (self.directory, self.files, self.hasThread) = (directory, files, hasThread)
    synced = Atomic(place.rawValue)
  }

  /// The place before which all frames are on the device.
  var place: SyncedPlace { SyncedPlace(rawValue: synced.load(ordering: .acquiring)) }

  /// The number of ended segments that are not synced.
  var endedSegments: Int { state.withLock { $0.requests.count { $0.isLast } } }

  /// Begins to sync a segment, and returns before that is done.
  func begin(_ request: Request) {
    let isFirst = state.withLock { state in
      state.requests.append(request)
      return state.requests.count == 1
    }
    guard isFirst else { return }
    thread.enter()
    let body: @Sendable () -> Void = { [self] in
      work()
      thread.leave()
    }
    if !(hasThread && startThread(body)) { body() }
  }

  /// Waits until all that was begun is done, and throws a failure of it, each time.
  func wait() throws(StoreError) {
    finish()
    if let failure = state.withLock({ $0.failure }) { throw failure }
  }

  /// Syncs the newest segment on the caller's thread, after all that was begun.
  func run(_ request: Request) throws(StoreError) {
    try wait()
    do throws(StoreError) {
      try synchronize(request)
    } catch {
      // The system may report a failed write once only.
      state.withLock { $0.failure = error }
      throw error
    }
  }

  /// Syncs the names in the directory, for a caller that has deleted a segment.
  ///
  /// The system may report a failed write once only: to this caller, who does not wait for the name
  /// of a new segment. So a failure is also thrown to all who wait.
  func synchronizeNames() throws(StoreError) {
    do throws(StoreError) {
      try files.synchronizeDirectory(directory)
    } catch {
      state.withLock { $0.failure = $0.failure ?? error }
      throw error
    }
  }

  /// Waits until all that was begun is done or has failed.
  func finish() { thread.wait() }

  /// Forgets a failure: recovery has checked and synced the frames before `place`.
  func reset(to place: SyncedPlace) {
    finish()
    state.withLock { $0.failure = nil }
    synced.store(place.rawValue, ordering: .releasing)
  }

  /// Whether a sync has failed: the device may have lost frames that rows name.
  var hasFailed: Bool { state.withLock { $0.failure != nil } }

  private func work() {
    var next = state.withLock { $0.requests.first }
    while let request = next {
      var failure: StoreError?
      do throws(StoreError) {
        try synchronize(request)
      } catch {
        failure = error
      }
      next = state.withLock { state in
        state.failure = state.failure ?? failure
        state.requests.removeFirst()
        return state.requests.first
      }
    }
  }

  private func synchronize(_ request: Request) throws(StoreError) {
    try request.file.synchronize()
    if state.withLock({ $0.namedSegment < request.number }) {
      try files.synchronizeDirectory(directory)
      state.withLock { $0.namedSegment = max($0.namedSegment, request.number) }
    }
    let place = SyncedPlace(segment: request.number, offset: request.end)
    state.withLock { state in
      // After a failure, frames before these may be lost.
      if state.failure == nil { synced.store(place.rawValue, ordering: .releasing) }
    }
    if request.isLast { seal(request.file, at: request.end) }
  }

  private func seal(_ file: any StoreFile, at end: Int) {
    var seal = ByteBuffer()
    FrameHeader.appendSeal(at: end, to: &seal)
    do throws(StoreError) {
      try seal.withBytes { seal throws(StoreError) in
        try file.write(seal, UnsafeRawBufferPointer(start: nil, count: 0), at: end)
      }
      // Room that was allocated in advance.
      try file.truncate(to: end + seal.count)
    } catch {
      // An opening after a power loss checks the frames of a segment without a seal.
    }
  }
}
