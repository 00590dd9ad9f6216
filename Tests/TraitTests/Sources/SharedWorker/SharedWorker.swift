import Foundation
import Larder
import LarderShared
import LarderTestSupport
import Synchronization

/// A machine that shares a cache and judges what it reads, for `SharedProcessTests`.
///
/// Arguments: the directory of its store; the server's socket, the ports of a cluster, or
/// `sentinel HOST PORT` or `cluster HOST PORT`; the file of ``Origin``, its number, the number of
/// machines, a seed, and whether the servers keep what they have.
///
/// It writes "ready", and then reads, loads, saves and removes until it reads "stop". It answers a
/// number after as many more calls, "check" with the value of each key, and "memory" with the bytes
/// that are allocated. It ends with its input.
@main struct SharedWorker {
  static func main() async throws {
    let worker = try Worker(CommandLine.arguments)
    try await worker.begin()
    say("ready")
    let isDone = Flag()
    let work = Task {
      do {
        try await worker.work(until: isDone)
      } catch {
        say("fault: \(error)")
        exit(1)
      }
    }
    let (lines, continuation) = AsyncStream.makeStream(of: String.self)
    Thread.detachNewThread {
      while let line = readLine() { continuation.yield(line) }
      continuation.finish()
    }
    for await line in lines {
      if let count = Int(line) {
        await worker.wait(forCalls: count)
        say("worked")
      } else if line == "stop" {
        isDone.raise()
        await work.value
        say("stopped \(worker.calls) calls, \(worker.localChanges) changes on this machine alone")
      } else if line == "memory" {
        say("\(allocatedBytes())")
        say("checked")
      } else {
        try await worker.check()
      }
    }
  }

  static func say(_ line: String) {
    FileHandle.standardOutput.write(Data("\(line)\n".utf8))
  }
}

/// What the source has of each key, and what the server has acknowledged, for all processes.
///
/// A value is a number that grows with each change. One task changes a key.
struct Origin: Sendable {
  static let keys = 12

  /// The name of a key in the cache.
  static func name(of key: Int) -> String { "k\(key)" }

  // `Atomic` may be used by several processes, which map the same file.
  nonisolated(unsafe) private let numbers: UnsafeMutablePointer<Atomic<UInt64>>

  init(_ path: String) throws {
    let file = open(path, O_RDWR)
    let bytes = 2 * Self.keys * 8
    let memory = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
    guard file >= 0, let memory, memory != MAP_FAILED else { throw POSIXError(.EIO) }
    numbers = memory.bindMemory(to: Atomic<UInt64>.self, capacity: 2 * Self.keys)
  }

  func value(of key: Int) -> UInt64 { numbers[key].load(ordering: .sequentiallyConsistent) }

  func change(_ key: Int) -> UInt64 {
    numbers[key].add(1, ordering: .sequentiallyConsistent).newValue
  }

  func acknowledged(_ key: Int) -> UInt64 {
    numbers[Self.keys + key].load(ordering: .sequentiallyConsistent)
  }

  func acknowledge(_ value: UInt64, of key: Int) {
    numbers[Self.keys + key].store(value, ordering: .sequentiallyConsistent)
  }
}

/// The values of a key that are too old to be confirmed: below what was acknowledged a lease ago.
private struct Floor {
  private(set) var value: UInt64 = 0
  private var next: (value: UInt64, at: ContinuousClock.Instant)?

  /// Notes what is acknowledged now.
  mutating func note(_ acknowledged: UInt64) {
    let now = ContinuousClock.now
    if let next, next.at.duration(to: now) < Worker.lease { return }
    value = next?.value ?? value
    next = (acknowledged, now)
  }
}

private final class Worker: Sendable {
  static let lease = Duration.milliseconds(300)
  private static let tasks = 4

  private let store: Store
  private let tier: SharedTier
  private let shared: SharedCache<String, Data>
  private let origin: Origin
  private let number: Int
  private let machines: Int
  private let seed: UInt64
  private let serverKeeps: Bool
  private let counts = Watched((calls: 0, local: 0))

  var calls: Int { counts.read { $0.calls } }
  var localChanges: Int { counts.read { $0.local } }

  func wait(forCalls count: Int) async {
    let goal = calls + count
    await counts.wait { $0.calls >= goal }
  }

  init(_ arguments: [String]) throws {
    store = try Store(at: URL(filePath: arguments[1]))
    var options = SharedTier.Options()
    (options.security, options.lease) = (.plain, Self.lease)
    // Some machines wait for the loads of others, and some do not.
    if arguments[4] != "0" { options.loadWait = .milliseconds(100) }
    tier = try SharedTier(Self.address(arguments[2]), namespace: "test", options)
    // It evicts, so that values come from memory, the disk and the server.
    let cache = try store.cache(
      "values", of: Data.self, coder: .bytes, byteBudget: 60_000)
    shared = try SharedCache(cache, in: tier)
    origin = try Origin(arguments[3])
    (number, machines) = (Int(arguments[4]) ?? 0, Int(arguments[5]) ?? 1)
    seed = UInt64(arguments[6]) ?? 0
    serverKeeps = arguments[7] == "true"
  }

  private static func address(_ text: String) -> SharedTier.Address {
    let words = text.split(separator: " ").map(String.init)
    if words.count == 3, let port = Int(words[2]) {
      let server = SharedTier.Address.server(host: words[1], port: port)
      return words[0] == "cluster"
        ? .cluster([server]) : .sentinels([server], primary: "shop")
    }
    let ports = text.split(separator: ",").compactMap { Int($0) }
    guard !ports.isEmpty else { return .socket(path: text) }
    return .cluster(ports.map { .server(host: "127.0.0.1", port: $0) })
  }

  /// Saves what the source has of the keys that this machine changes.
  ///
  /// If it was killed during its last change, no machine may have saved it.
  func begin() async throws {
    for key in (0..<Self.tasks).flatMap(keys) {
      let value = origin.value(of: key)
      if value > 0, try await shared.save(Self.data(value), for: Origin.name(of: key)) == .shared {
        origin.acknowledge(value, of: key)
      }
    }
  }

  /// The keys that a task changes.
  private func keys(ofTask task: Int) -> [Int] {
    (0..<Origin.keys).filter { $0 % machines == number && ($0 / machines) % Self.tasks == task }
  }

  /// A value of 8 to 20,000 bytes that depend on a number, so that damage shows.
  private static func data(_ value: UInt64) -> Data {
    let size = [8, 200, 20_000][Int(value % 3)]
    return withUnsafeBytes(of: value.littleEndian) { Data($0) }
      + Data(repeating: UInt8(truncatingIfNeeded: value), count: size - 8)
  }

  private static func value(_ data: Data) -> UInt64? {
    let value = data.prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    return data == Self.data(value) ? value : nil
  }

  func work(until isDone: Flag) async throws {
    try await withThrowingTaskGroup { group in
      for task in 0..<Self.tasks {
        group.addTask { try await self.work(task, until: isDone) }
      }
      try await group.waitForAll()
    }
  }

  private func work(_ task: Int, until isDone: Flag) async throws {
    var random = SplitMix64(seed: seed &+ UInt64(task))
    var floors = [Floor](repeating: Floor(), count: Origin.keys)
    let mine = keys(ofTask: task)
    var changes = [Int: Change]()
    while !isDone.isRaised {
      let key = Int.random(in: 0..<Origin.keys, using: &random)
      counts.change { $0.calls += 1 }
      // Calls that find all in memory never wait, and others would not run.
      await Task.yield()
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<3:
        guard let key = mine.randomElement(using: &random) else { break }
        changes[key] = try await change(key, removes: random.next() % 4 == 0)
      case 3..<6:
        floors[key].note(origin.acknowledged(key))
        let load = load(random.next() % 20)
        if let entry = try await shared.entry(
          for: Origin.name(of: key), load: { _ in .value(await load(key)) })
        {
          judge(entry.value, of: key, entry.isConfirmed ? floors[key] : nil, changes[key])
        }
      case 6..<9:
        floors[key].note(origin.acknowledged(key))
        let news = news
        if let entry = try await shared.entry(for: Origin.name(of: key)) {
          judge(entry.value, of: key, entry.isConfirmed ? floors[key] : nil, changes[key])
        } else if serverKeeps, changes[key]?.isSavedForAll == true, news == self.news {
          SharedWorker.say("fault: key \(key) has lost our \(changes[key]?.value ?? 0)")
        }
      default:
        let keys = [key, (key + 1) % Origin.keys, (key + 7) % Origin.keys]
        let load = load(random.next() % 20)
        let values = try await shared.values(for: keys.map(Origin.name)) { missing in
          var replies: [LoadReply<Data>] = []
          for key in keys where missing.contains(Origin.name(of: key)) {
            replies.append(.value(await load(key)))
          }
          return replies
        }
        for (key, value) in zip(keys, values) {
          if let value { judge(value, of: key, nil, changes[key]) }
        }
      }
    }
  }

  /// The last change of a key by a task, which it must see.
  private struct Change {
    let value: UInt64
    /// Whether the server has acknowledged a value.
    let isSavedForAll: Bool
  }

  /// What has happened to the connection; the same before and after a read that reached the server.
  private var news: [Int] {
    let statistics = tier.statistics
    let isConnected = tier.state == .connected ? 1 : 0
    return [isConnected, statistics.connections, statistics.failedReads, statistics.failedWrites]
  }

  /// A load that reads the source, and replies after a while.
  private func load(_ steps: UInt64) -> @Sendable (Int) async -> Data {
    { [origin] key in
      let value = origin.value(of: key)
      for _ in 0..<steps { await Task.yield() }
      return Self.data(value)
    }
  }

  private func change(_ key: Int, removes: Bool) async throws -> Change {
    let value = origin.change(key)
    let outcome =
      removes
      ? try await shared.remove(Origin.name(of: key))
      : try await shared.save(Self.data(value), for: Origin.name(of: key))
    if outcome == .shared {
      origin.acknowledge(value, of: key)
    } else {
      counts.change { $0.local += 1 }
    }
    return Change(value: value, isSavedForAll: !removes && outcome == .shared)
  }

  /// Says so if a value is damaged, older than a floor, or older than this task's own change.
  private func judge(_ data: Data, of key: Int, _ floor: Floor?, _ change: Change?) {
    guard let value = Self.value(data) else {
      return SharedWorker.say("fault: key \(key) has a damaged value")
    }
    if let floor, value < floor.value {
      SharedWorker.say("fault: key \(key) has \(value), confirmed, after \(floor.value)")
    }
    if let change, value < change.value {
      SharedWorker.say("fault: key \(key) has \(value) after our \(change.value)")
    }
  }

  /// Says what this machine finds under each key, once it can reach the server.
  func check() async throws {
    for await state in tier.states where state == .connected { break }
    for key in 0..<Origin.keys {
      let entry = try await shared.entry(for: Origin.name(of: key))
      let isConfirmed = entry?.isConfirmed ?? true
      let value = entry.map { "\(Self.value($0.value) ?? 0)" } ?? "none"
      SharedWorker.say("\(key) \(value) \(isConfirmed)")
    }
    SharedWorker.say("checked")
  }
}
