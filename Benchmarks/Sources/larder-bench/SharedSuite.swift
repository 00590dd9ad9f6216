#if Shared
  import Foundation
  import Larder
  import LarderShared
  import RawRedis
  import Synchronization

  /// A cache that machines share, against the same commands by hiredis to the same server.
  struct SharedSuite {
    private static let smallBytes = 100
    private static let largeBytes = 20_000
    /// The bytes of a record around its value.
    private static let recordBytes = 36
    private static let neverLoads: @Sendable () async throws -> Data = {
      throw WrongResults(description: "a value was not there")
    }

    private let workspace: Workspace
    private let server: RedisServer
    /// The tiers of two machines, and one without a server.
    private let tier: SharedTier
    private let otherTier: SharedTier
    private let degradedTier: SharedTier
    private let operations: Int
    private let hits: Int
    /// The machine that has saved what the others read.
    private let other: Machine

    init(_ scale: BenchScale, in workspace: Workspace) throws {
      self.workspace = workspace
      (operations, hits) = (scale.visited / 50, scale.visited)
      server = try RedisServer(in: workspace)
      var options = SharedTier.Options()
      options.security = .plain
      // Busy machines answer late, too.
      options.requestTimeout = .seconds(1)
      let address = SharedTier.Address.socket(path: server.path)
      tier = try SharedTier(address, namespace: "bench", options)
      otherTier = try SharedTier(address, namespace: "bench", options)
      degradedTier = try SharedTier(
        .socket(path: server.path + "-absent"), namespace: "bench", options)
      other = try Machine(at: workspace.directory("other"), in: otherTier)
      let (tiers, caches, count) = ([tier, otherTier], [other.small, other.large], operations)
      _ = try inTasks(1, 1) { _ in
        for tier in tiers { try await tier.waitUntilConnected() }
        return true
      }
      for (cache, bytes) in zip(caches, [Self.smallBytes, Self.largeBytes]) {
        let value = Data(count: bytes)
        _ = try inTasks(8, count) { try await cache.save(value, for: $0) == .shared }
      }
      for bytes in [Self.smallBytes, Self.largeBytes] {
        let connection = try server.connect()
        defer { raw_redis_close(connection) }
        _ = raw_redis_set(connection, plan(bytes, count: operations))
      }
    }

    func close() throws {
      for tier in [tier, otherTier, degradedTier] { tier.close() }
      try other.store.close()
      server.close()
    }

    /// A store with shared caches.
    private struct Machine: Sendable {
      let store: Store
      let small: SharedCache<Int, Data>
      let large: SharedCache<Int, Data>
      let saved: SharedCache<Int, Data>

      init(at directory: URL, in tier: SharedTier, memory: MemoryTier = .shared) throws {
        let store = try Store(at: directory)
        let caches = try ["small", "large", "saved"].map { name in
          try SharedCache(
            try store.cache(
              name, of: Data.self, keyedBy: Int.self, coder: .bytes, memory: memory), in: tier)
        }
        (self.store, small, large, saved) = (store, caches[0], caches[1], caches[2])
      }
    }

    /// Opens a machine without entries, measures `work` with it, and closes it.
    private func onNewMachine(_ work: (Machine) throws -> Duration) throws -> Duration {
      try workspace.remove("new")
      let machine = try Machine(at: workspace.directory("new"), in: tier)
      let time = try work(machine)
      try machine.store.close()
      return time
    }

    // MARK: - Contests

    var contests: [Contest] {
      get throws {
        [
          reading("value of another machine, 1 task to GET", tasks: 1, depth: 1, goal: 2),
          reading("value of another machine, 8 tasks to GET by 8 threads", tasks: 8, threads: 8),
          reading(
            "value of another machine, 64 tasks to GET, 64 at once", tasks: 64, depth: 64,
            goal: 2.5),
          reading(
            "20 KB of another machine, 8 tasks to GET by 8 threads", Self.largeBytes, tasks: 8,
            threads: 8),
          reading(
            "20 KB of another machine, 64 tasks to GET, 64 at once", Self.largeBytes, tasks: 64,
            depth: 64),
          try confirming("copy confirmed, 1 task to GETRANGE", tasks: 1, depth: 1),
          try confirming("copy confirmed, 64 tasks to GETRANGE, 64 at once", tasks: 64, depth: 64),
          saving("save, 1 task to SET", tasks: 1, depth: 1),
          saving("save, 64 tasks to SET, 64 at once", tasks: 64, depth: 64),
          seeing("save elsewhere, until it is read here, to SET and GET"),
          try hitting("value in memory, to a cache that is not shared"),
          try readingDegraded("no server, read from disk, to a cache that is not shared"),
        ]
      }
    }

    /// New machines read what another one has saved.
    private func reading(
      _ name: String, _ bytes: Int = smallBytes, tasks: Int, threads: Int = 1, depth: Int = 1,
      goal: Double? = nil
    ) -> Contest {
      let isSmall = bytes == Self.smallBytes
      return Contest(
        name: name, operations: operations, goal: goal,
        a: {
          try onNewMachine { machine in
            let cache = isSmall ? machine.small : machine.large
            return try timedInTasks(tasks, operations) { number in
              try await cache.value(for: number, load: Self.neverLoads).count == bytes
            }
          }
        },
        b: { try asking(bytes, threads: threads, depth: depth, raw_redis_get) })
    }

    /// A machine without memory reads what it has on its disk.
    private func confirming(_ name: String, tasks: Int, depth: Int) throws -> Contest {
      let machine = try Machine(
        at: workspace.directory("copies-\(tasks)"), in: tier, memory: .none)
      let work: @Sendable (Int) async throws -> Bool = { number in
        try await machine.small.value(for: number, load: Self.neverLoads).count == Self.smallBytes
      }
      _ = try inTasks(64, operations, work)
      return Contest(
        name: name, operations: operations,
        a: { try timedInTasks(tasks, operations, work) },
        b: { try asking(Self.smallBytes, depth: depth, raw_redis_get_part) })
    }

    private func saving(_ name: String, tasks: Int, depth: Int) -> Contest {
      let value = Data(count: Self.smallBytes)
      return Contest(
        name: name, operations: operations,
        a: {
          try onNewMachine { machine in
            try timedInTasks(tasks, operations) { number in
              try await machine.saved.save(value, for: number) == .shared
            }
          }
        },
        b: { try asking(Self.smallBytes, depth: depth, raw_redis_set) })
    }

    /// One machine saves, and the other one reads until it has what was saved.
    private func seeing(_ name: String) -> Contest {
      let count = operations / 4
      return Contest(
        name: name, operations: count,
        a: {
          try onNewMachine { machine in
            try timedInTasks(1, count) { number in
              let value = Data("\(number) of \(count)".utf8)
              guard try await other.saved.save(value, for: -1) == .shared else { return false }
              while try await machine.saved.value(for: -1, load: Self.neverLoads) != value {}
              return true
            }
          }
        },
        b: {
          let (writer, reader) = (try server.connect(), try server.connect())
          defer { for connection in [writer, reader] { raw_redis_close(connection) } }
          return try timed(expecting: count) {
            (0..<count).count { number in
              let one = plan(Self.smallBytes, from: number, count: 1)
              return raw_redis_set(writer, one) == 1 && raw_redis_get(reader, one) == 1
            }
          }
        })
    }

    private func hitting(_ name: String) throws -> Contest {
      let machine = try Machine(at: workspace.directory("hit"), in: tier)
      let plain = try Store(at: workspace.directory("plain")).cache(
        "small", of: Data.self, keyedBy: Int.self, coder: .bytes)
      let keys = min(256, operations)
      for key in 0..<keys { try plain.save(Data(count: Self.smallBytes), for: key) }
      let (hits, bytes, shared) = (hits, Self.smallBytes, machine.small)
      return Contest(
        name: name, operations: hits, goal: 1, goalMargin: 20,
        a: {
          try timedInTasks(1, hits) {
            try await shared.value(for: $0 % keys, load: Self.neverLoads).count == bytes
          }
        },
        b: {
          try timedInTasks(1, hits) {
            try await plain.value(for: $0 % keys, load: Self.neverLoads).count == bytes
          }
        })
    }

    private func readingDegraded(_ name: String) throws -> Contest {
      let store = try Store(at: workspace.directory("degraded"))
      let caches = try ["shared", "plain"].map { name in
        let cache = try store.cache(
          name, of: Data.self, keyedBy: Int.self, coder: .bytes, memory: .none)
        for number in 0..<operations { try cache.save(Data(count: Self.smallBytes), for: number) }
        return cache
      }
      let (shared, plain) = (try SharedCache(caches[0], in: degradedTier), caches[1])
      return Contest(
        name: name, operations: operations, goal: 1, goalMargin: 1000,
        a: {
          try timedInTasks(1, operations) { number in
            try await shared.value(for: number, load: Self.neverLoads).count == Self.smallBytes
          }
        },
        b: {
          try timedInTasks(1, operations) { number in
            try await plain.value(for: number, load: Self.neverLoads).count == Self.smallBytes
          }
        })
    }

    // MARK: - hiredis

    /// Commands about values of as many bytes as a record with a value of `bytes` bytes.
    private func plan(
      _ bytes: Int, from first: Int = 0, count: Int, depth: Int = 1
    ) -> raw_redis_plan {
      let prefix: StaticString = bytes == Self.smallBytes ? "raw-small-" : "raw-large-"
      return raw_redis_plan(
        prefix: UnsafeRawPointer(prefix.utf8Start).assumingMemoryBound(to: CChar.self),
        first: first, count: count, value_bytes: bytes + Self.recordBytes, depth: depth)
    }

    /// Measures a command for each number, by threads with a connection each.
    private func asking(
      _ bytes: Int, threads: Int = 1, depth: Int,
      _ command: @escaping @Sendable (OpaquePointer, raw_redis_plan) -> Int
    ) throws -> Duration {
      let connections = try (0..<threads).map { _ in Connection(redis: try server.connect()) }
      defer { for connection in connections { raw_redis_close(connection.redis) } }
      let share = operations / threads
      let right = Mutex(0)
      return try timed(expecting: operations) {
        DispatchQueue.concurrentPerform(iterations: threads) { index in
          let plan = plan(bytes, from: index * share, count: share, depth: depth)
          let count = command(connections[index].redis, plan)
          right.withLock { $0 += count }
        }
        return right.withLock { $0 }
      }
    }

    /// Used by one thread.
    private struct Connection: @unchecked Sendable {
      let redis: OpaquePointer
    }
  }

  /// A Redis server on a socket, which keeps nothing on the disk.
  private struct RedisServer {
    let path: String
    private let shell = Process()
    private let input = Pipe()

    init(in workspace: Workspace) throws {
      path = workspace.directory("server").path(percentEncoded: false) + "socket"
      // The server ends when this process has ended, however it ended.
      let script = """
        redis-server --port 0 --unixsocket "$0" --save '' --appendonly no >/dev/null &
        read -r line; kill $!; wait
        """
      shell.executableURL = URL(filePath: "/bin/sh")
      shell.arguments = ["-c", script, path]
      shell.standardInput = input
      try FileManager.default.createDirectory(
        at: workspace.directory("server"), withIntermediateDirectories: true)
      try shell.run()
      let deadline = ContinuousClock.now + .seconds(10)
      while true {
        if let connection = raw_redis_open(path) {
          raw_redis_close(connection)
          return
        }
        guard ContinuousClock.now < deadline, shell.isRunning else { break }
        usleep(10_000)
      }
      close()
      throw WrongResults(description: "redis-server does not start")
    }

    func connect() throws -> OpaquePointer {
      guard let connection = raw_redis_open(path) else {
        throw WrongResults(description: "redis-server accepts no connection")
      }
      return connection
    }

    func close() {
      input.fileHandleForWriting.closeFile()
      shell.waitUntilExit()
    }
  }
#endif
