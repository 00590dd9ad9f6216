import Foundation
import Larder
import LarderAllocationCount
import LarderTestSupport
import Specimens

#if canImport(Glibc)
  import Glibc
#endif

/// The memory of this process before and after a store has filled its memory for values.
enum MemoryUse {
  /// Fills the memory for values until it was replaced twice, and prints one line.
  ///
  /// The line has the limit of the memory, the bytes that the process takes more than before, the
  /// store's own estimate of them, and the number of values.
  static func run(in path: String, limit: Int, kind: String) throws {
    var options = Store.Options()
    options.memoryBytes = limit
    options.blockCacheBytes = 256 << 10
    options.writeBufferBytes = 1 << 20
    let store = try Store(at: URL(filePath: path), options: options)
    // The buffers of LevelDB and the allocator have their full size afterwards.
    try visit(store, kind, "without memory", .none) { $0 == 2000 }
    // Free memory would be used again, and hide a part of the growth.
    larder_return_free_memory()
    let before = anonymousBytes()
    try visit(store, kind, "with memory", .shared) { number in
      let memory = store.statistics.memory
      return number % 100 == 0 && memory.evictions >= 2 * memory.entries && memory.entries > 0
    }
    let growth = anonymousBytes() - before
    let memory = store.statistics.memory
    print("\(limit) \(growth) \(memory.bytes) \(memory.entries)")
    try store.close()
  }

  /// Saves and reads values, and reads some again, until `isEnough` returns true.
  private static func visit(
    _ store: Store, _ kind: String, _ name: String, _ memory: MemoryTier,
    until isEnough: (Int) -> Bool
  ) throws {
    var visits: [Visit] = []
    for (other, make) in makers where kind == other || kind == "mixed" {
      visits.append(try make(store, "\(other) \(name)", memory))
    }
    guard !visits.isEmpty else { return print("unknown kind \(kind)") }
    var random = SplitMix64(seed: 7)
    var number = 0
    while !isEnough(number) {
      try visits[number % visits.count](number, &random)
      number += 1
    }
  }

  /// Saves a new value and reads it, and reads an older one.
  private typealias Visit = (_ number: Int, inout SplitMix64) throws -> Void
  private typealias Maker = (Store, _ name: String, MemoryTier) throws -> Visit

  private static func maker<Value: Codable & Sendable>(
    coder: Coder<Value> = .binary, _ make: @escaping (inout SplitMix64) -> Value
  ) -> Maker {
    { store, name, memory in
      let cache = try store.cache(
        name, of: Value.self, keyedBy: Int.self, coder: coder, memory: memory)
      return { number, random in
        try cache.save(make(&random), for: number)
        for key in [number, number - number % 1000] { _ = try cache.value(for: key) }
      }
    }
  }

  // MARK: - Values

  private static var makers: [(kind: String, maker: Maker)] {
    [
      ("integers", maker { Int(truncatingIfNeeded: $0.next()) }),
      ("texts", maker(texts)),
      ("items", maker(item)),
      ("arrays", maker { random in size(to: 100, &random) { item(&$0) } }),
      ("arrays of texts", maker { random in size(to: 100, &random) { texts(&$0) } }),
      ("numbers", maker { random in size(to: 1000, &random) { Double($0.next() % 1000) / 7 } }),
      ("small numbers", maker { random in size(to: 1000, &random) { Int($0.next() % 100) } }),
      ("words", maker { random in size(to: 100, &random) { text(1...8, &$0) } }),
      ("bytes", maker(coder: .bytes, bytes)),
      ("data", maker(bytes)),
    ]
  }

  private struct Texts: Codable {
    var title: String
    var author: String
    var note: String?
  }

  private static func texts(_ random: inout SplitMix64) -> Texts {
    Texts(
      title: text(5...60, &random), author: text(3...20, &random),
      note: random.next() % 2 == 0 ? nil : text(10...200, &random))
  }

  private static func item(_ random: inout SplitMix64) -> Item {
    let address = "https://example.com/images/\(random.next())/\(text(1...30, &random)).png"
    guard let url = URL(string: address) else { fatalError("\(address) is not a URL") }
    return Item(
      id: UUID(), description: text(10...80, &random),
      location: random.next() % 2 == 0 ? nil : text(5...20, &random), url: url)
  }

  /// 1 B to 200 KB; each power of two is equally probable.
  private static func bytes(_ random: inout SplitMix64) -> Data {
    let most = 1 << Int.random(in: 1...18, using: &random)
    return Data(repeating: 7, count: min(200_000, Int.random(in: 1...most, using: &random)))
  }

  private static func text(_ length: ClosedRange<Int>, _ random: inout SplitMix64) -> String {
    String(repeating: "x", count: Int.random(in: length, using: &random))
  }

  private static func size<T>(
    to most: Int, _ random: inout SplitMix64, _ make: (inout SplitMix64) -> T
  ) -> [T] {
    let count = Int.random(in: 1...most, using: &random)
    return (0..<count).map { _ in make(&random) }
  }

  // MARK: - The process

  /// The resident bytes of this process, without those of files, which LevelDB maps.
  private static func anonymousBytes() -> Int {
    #if canImport(Glibc)
      let file = open("/proc/self/statm", O_RDONLY)
      defer { close(file) }
      var text = [UInt8](repeating: 0, count: 200)
      let count = read(file, &text, text.count)
      let pages = String(decoding: text.prefix(max(0, count)), as: UTF8.self)
        .split(separator: " ").compactMap { Int($0) }
      return pages.count < 3 ? 0 : (pages[1] - pages[2]) * sysconf(Int32(_SC_PAGESIZE))
    #else
      return 0
    #endif
  }
}
