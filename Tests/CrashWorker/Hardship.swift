import Larder
import LarderTestSupport

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// A store that temporarily lacks descriptors, permissions or threads.
///
/// Each call is a line with "done" or "failed", the call's name and its error. Each acknowledged
/// write is another line, with "wrote" and its key.
struct Hardship {
  private let path: String
  private var engine: LevelDBEngine
  private var written = 0

  private static let tables = 12

  /// Makes a store with several tables, and reopens it so that none of them is open.
  private init(in path: String) throws(StoreError) {
    self.path = path
    engine = try Hardship.open(path)
    for table in 0..<Self.tables {
      try put("table\(table)", synced: false)
      try engine.compact(EngineRange(from: [0xFF]))
    }
    try reopen()
  }

  private static func open(_ path: String) throws(StoreError) -> LevelDBEngine {
    var options = CrashWorker.options
    options.writeBufferBytes = 64 << 10
    return try LevelDBEngine(at: path, options: options)
  }

  private mutating func reopen() throws(StoreError) {
    try engine.close()
    engine = try Self.open(path)
  }

  // MARK: - Limits and permissions

  /// Allows no more file descriptors than are in use; then opens the store with one more each time.
  static func fewFiles(in path: String) throws(StoreError) {
    var hardship = try Hardship(in: path)
    if openFiles(in: path).isEmpty { CrashWorker.say("an open store has no open files") }
    setLimit(lowestFree)
    hardship.tryEverything()
    setLimit(nil)
    try hardship.recover()

    try hardship.engine.close()
    let free = lowestFree
    for file in openFiles(in: path) { CrashWorker.say("open after closing: \(file)") }
    var spare = 0
    while spare < 40 {
      setLimit(free + spare)
      let isOpened = attempt("open") { () throws(StoreError) in
        try Self.open(path).close()
      }
      setLimit(nil)
      for file in openFiles(in: path) { CrashWorker.say("leaked \(file)") }
      if isOpened { break }
      spare += 1
    }
    CrashWorker.say("spare \(spare)")
    hardship.engine = try Self.open(path)
    try hardship.recover()
    try hardship.engine.close()
    CrashWorker.say("end")
  }

  /// Removes all permissions of the store's directory.
  static func noRights(in path: String) throws(StoreError) {
    var hardship = try Hardship(in: path)
    chmod(path, 0)
    hardship.tryEverything()
    attempt("open") { () throws(StoreError) in try Self.open(path).close() }
    chmod(path, 0o700)
    try hardship.recover()
    try hardship.engine.close()
    CrashWorker.say("end")
  }

  /// Allows no more threads than this process has before it opens its first store.
  static func noThreads(in path: String) throws(StoreError) {
    setLimit(0, of: threads)
    for _ in 0..<3 {
      attempt("open") { () throws(StoreError) in
        // LevelDB starts its thread when it first has to write a table.
        var hardship = try Hardship(in: path)
        hardship.tryEverything()
      }
    }
    setLimit(nil, of: threads)
    var hardship = try Hardship(in: path)
    try hardship.recover()
    // LevelDB's thread exists by now.
    setLimit(0, of: threads)
    try hardship.reopen()
    try hardship.recover()
    try hardship.engine.close()
    CrashWorker.say("end")
  }

  // MARK: - Calls

  /// Reads every table, and writes until LevelDB needs new files.
  private mutating func tryEverything() {
    let engine = engine
    for table in 0..<Self.tables {
      Self.attempt("get") { () throws(StoreError) in try Self.read("table\(table)", from: engine) }
    }
    Self.attempt("scan") { () throws(StoreError) in
      let cursor = try engine.cursor(over: EngineRange())
      while try cursor.next() {}
    }
    for index in 0..<60 {
      Self.attempt(index % 20 == 10 ? "flush" : "write") { () throws(StoreError) in
        try put("t-hard\(index)", synced: index % 20 == 10)
      }
    }
    Self.attempt("compact") { () throws(StoreError) in try engine.compact(EngineRange()) }
  }

  /// Expects all calls to succeed again, except that the first write may report an earlier failure.
  private mutating func recover() throws(StoreError) {
    for attempt in 0..<3 {
      let isDone = Self.attempt("again") { () throws(StoreError) in
        try put("t-again\(attempt)", synced: true)
      }
      if isDone { break }
    }
    try put("t-good", synced: true)
    for table in 0..<Self.tables { try Self.read("table\(table)", from: engine) }
    for index in 0..<60 { try put("t-good\(index)", synced: false) }
    try engine.compact(EngineRange())
    CrashWorker.say("good")
  }

  private static func read(_ key: String, from engine: LevelDBEngine) throws(StoreError) {
    guard try engine.get(Array(key.utf8).span.bytes) != nil else {
      throw .corrupt("\(key) is missing")
    }
  }

  private mutating func put(_ key: String, synced: Bool) throws(StoreError) {
    written += 1
    var random = SplitMix64(seed: UInt64(written))
    let value = [UInt8](repeating: 0, count: Stamp.test.end) + random.bytes(4000)
    var batch = WriteBatch()
    CrashWorker.put(Array(key.utf8), value, in: &batch)
    try engine.write(&batch, synced: synced)
    CrashWorker.say("wrote \(key)")
  }

  /// Returns false if the call failed.
  @discardableResult private static func attempt(
    _ call: String, _ body: () throws(StoreError) -> Void
  ) -> Bool {
    do throws(StoreError) {
      try body()
      CrashWorker.say("done \(call)")
      return true
    } catch {
      CrashWorker.say("failed \(call) \(error.line)")
      return false
    }
  }

  // MARK: - Descriptors

  /// The open files in a directory, and the directory itself if it is open.
  ///
  /// Others are not the store's: the C library opens files of its own on any thread, for a moment.
  private static func openFiles(in path: String) -> [String] {
    (0..<1024).compactMap { Self.path(of: $0) }.filter { $0.hasPrefix(path) }
  }

  /// The path of an open file; nil if the descriptor is free.
  private static func path(of descriptor: Int32) -> String? {
    var bytes = [UInt8](repeating: 0, count: Int(PATH_MAX))
    #if canImport(Darwin)
      guard fcntl(descriptor, F_GETPATH, &bytes) >= 0 else { return nil }
    #else
      let count = readlink("/proc/self/fd/\(descriptor)", &bytes, bytes.count)
      guard count >= 0 else { return nil }
    #endif
    return String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
  }

  /// Allows only so many files more than are open.
  static func allowFiles(_ count: Int) { setLimit(free.dropFirst(count).first ?? 1024) }

  /// The descriptor that the next opened file gets.
  private static var lowestFree: Int { free.first ?? 1024 }

  /// The descriptors that are not in use, in the order in which files get them.
  private static var free: some Collection<Int> {
    (0..<1024).lazy.filter { fcntl(Int32($0), F_GETFD) < 0 }
  }

  // MARK: - Limits

  #if canImport(Darwin)
    private typealias Resource = Int32
    private static let files = RLIMIT_NOFILE
    private static let threads = RLIMIT_NPROC
  #else
    private typealias Resource = __rlimit_resource_t
    private static let files = Resource(RLIMIT_NOFILE.rawValue)
    private static let threads = Resource(__RLIMIT_NPROC.rawValue)
  #endif

  /// Sets the limit of a resource; nil sets the system's maximum.
  private static func setLimit(_ count: Int?, of resource: Resource = files) {
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return CrashWorker.say("no limit to read") }
    limit.rlim_cur = count.map(rlim_t.init) ?? limit.rlim_max
    guard setrlimit(resource, &limit) == 0 else { return CrashWorker.say("no limit to set") }
  }
}
