import Foundation
import Larder
import LarderBytes

/// How values become a peer's payloads.
struct PeerCoder<Value: Sendable> {
  /// Nothing where the value is the payload.
  let name: String?
  /// Lends a value's payload, which may be made in the buffer.
  let lend: (Value, inout ByteBuffer, (RawSpan) throws -> Void) throws -> Void
  /// Whether a payload, decoded, is that value.
  let holds: (RawSpan, Value) throws -> Bool
}

extension PeerCoder where Value: Codable {
  /// One encoder and one decoder for all values, as a program would keep them.
  static func json(_ isSame: @escaping (Value, Value) -> Bool) -> PeerCoder {
    let (encoder, decoder) = (JSONEncoder(), JSONDecoder())
    return PeerCoder(
      name: "JSON", lend: { value, _, body in try body(encoder.encode(value).span.bytes) },
      holds: { bytes, value in
        try withData(bytes) { isSame(try decoder.decode(Value.self, from: $0), value) }
      })
  }

  /// Larder's own.
  static func binary(_ isSame: @escaping (Value, Value) -> Bool) -> PeerCoder {
    let coder = Coder<Value>.binary
    return PeerCoder(
      name: "binary",
      lend: { value, buffer, body in
        buffer.truncate(to: 0)
        try coder.encode(value, &buffer)
        try buffer.withBytes { try body($0.bytes) }
      },
      holds: { bytes, value in isSame(try coder.decode(bytes), value) })
  }
}

extension PeerCoder<Data> {
  static var bytes: PeerCoder {
    PeerCoder(
      name: nil, lend: { value, _, body in try body(value.span.bytes) },
      holds: { bytes, value in areEqual(bytes, value.span.bytes) })
  }
}

/// The same records in Larder and in the stores of others, saved and read in the same order.
///
/// The key of a record is its place among the values. Saves go to a directory of their own for each
/// run, reads to one that was filled by the same saves; both are closed behind the measured time.
struct PeerRecords<Value: Codable & Sendable> {
  let name: String
  var values: [Value]
  /// How many saves and reads one run has: the values in turns.
  var operations: Int
  /// How many records a batch has.
  var together = 256
  /// Nothing for records that stay for ever, and then need no index in any store.
  var expires: Double?
  var coder: Coder<Value> = .binary
  let isSame: (Value, Value) -> Bool
  let workspace: Workspace

  enum Saving { case each, together }

  /// The same with no more than is enough for that store.
  func limited(for kind: PeerKind) -> PeerRecords {
    var fewer = self
    fewer.values = Array(values.prefix(kind.mostRecords))
    fewer.operations = min(operations, kind.mostOperations)
    return fewer
  }

  // MARK: - Contests

  func saving(
    _ label: String, _ kind: PeerKind, _ peerCoder: PeerCoder<Value>, goal: Double?,
    _ saving: Saving = .each
  ) -> Contest {
    let order = order(seed: Scale.seed, operations)
    return Contest(
      name: label + against(kind, peerCoder), operations: operations, goal: goal,
      mostRounds: kind.saveRounds,
      a: {
        let store = try Store(at: emptied("larder-saved"))
        let cache = try cache(in: store)
        let time = try timed(expecting: operations) { try save(order, in: cache, store, saving) }
        try expectSaved(order) { key in
          try cache.value(for: key).map { isSame($0, values[key]) } ?? false
        }
        try store.close()
        return time
      },
      b: {
        let peer = try kind.open(emptied("peer-saved"))
        let time = try timed(expecting: operations) { try put(order, in: peer, peerCoder, saving) }
        try expectSaved(order) { key in
          try peer.get(key) { try peerCoder.holds($0, values[key]) }
        }
        return time
      })
  }

  func overwriting(
    _ label: String, _ kind: PeerKind, _ peerCoder: PeerCoder<Value>
  ) -> Contest {
    let order = order(seed: Scale.seed + 1, operations)
    return Contest(
      name: label + against(kind, peerCoder), operations: operations, mostRounds: kind.saveRounds,
      a: {
        let store = try Store(at: filled())
        let cache = try cache(in: store)
        let time = try timed(expecting: operations) { try save(order, in: cache, store, .each) }
        try store.close()
        return time
      },
      b: {
        let peer = try kind.open(filled(kind, peerCoder))
        return try timed(expecting: operations) { try put(order, in: peer, peerCoder, .each) }
      })
  }

  func retrieving(
    _ label: String, _ kind: PeerKind, _ peerCoder: PeerCoder<Value>, goal: Double?
  ) -> Contest {
    let order = order(seed: Scale.seed + 2, operations)
    return Contest(
      name: label + against(kind, peerCoder), operations: operations, goal: goal,
      a: {
        let store = try Store(at: filled())
        let cache = try cache(in: store)
        let time = try timed(expecting: operations) {
          var right = 0
          for key in order {
            if let value = try cache.value(for: key), isSame(value, values[key]) { right += 1 }
          }
          return right
        }
        try store.close()
        return time
      },
      b: {
        let peer = try kind.open(filled(kind, peerCoder))
        return try timed(expecting: operations) {
          var right = 0
          for key in order where try peer.get(key, { try peerCoder.holds($0, values[key]) }) {
            right += 1
          }
          return right
        }
      })
  }

  // MARK: - Parts

  private func against(_ kind: PeerKind, _ coder: PeerCoder<Value>) -> String {
    ", to \(kind.name)" + (coder.name.map { ", \($0)" } ?? "")
  }

  /// All values in turns until there are so many, each time in another order.
  private func order(seed: UInt64, _ count: Int) -> [Int] {
    var order: [Int] = []
    while order.count < count {
      order += Plan.shuffled(values.count, seed: seed + UInt64(order.count)).map { Int($0) }
    }
    return Array(order.prefix(count))
  }

  private var everything: [Int] { order(seed: Scale.seed, max(values.count, operations)) }

  private func cache(in store: Store) throws -> Cache<Int, Value> {
    try store.cache(
      "records", of: Value.self, keyedBy: Int.self,
      lifetime: expires == nil ? .unlimited : .days(7), coder: coder)
  }

  private func save(
    _ order: [Int], in cache: Cache<Int, Value>, _ store: Store, _ saving: Saving
  ) throws -> Int {
    switch saving {
    case .each:
      for key in order { try cache.save(values[key], for: key) }
    case .together:
      for start in stride(from: 0, to: order.count, by: together) {
        try store.write { batch in
          for key in order[start..<min(start + together, order.count)] {
            batch.save(values[key], for: key, in: cache)
          }
        }
      }
    }
    return order.count
  }

  private func put(
    _ order: [Int], in peer: any Peer, _ coder: PeerCoder<Value>, _ saving: Saving
  ) throws -> Int {
    var buffer = ByteBuffer()
    func put(_ keys: ArraySlice<Int>) throws {
      for key in keys {
        try coder.lend(values[key], &buffer) { try peer.put(key, $0, expires: expires) }
      }
    }
    switch saving {
    case .each: try put(order[...])
    case .together:
      for start in stride(from: 0, to: order.count, by: together) {
        try peer.together { try put(order[start..<min(start + together, order.count)]) }
      }
    }
    return order.count
  }

  /// Looks at the last ones that were saved.
  private func expectSaved(_ order: [Int], _ isThere: (Int) throws -> Bool) throws {
    guard try order.suffix(100).allSatisfy(isThere) else {
      throw WrongResults(description: "not every record was saved")
    }
  }

  // MARK: - Directories

  private func emptied(_ name: String) throws -> URL {
    try workspace.remove(name)
    try FileManager.default.createDirectory(
      at: workspace.directory(name), withIntermediateDirectories: true)
    return workspace.directory(name)
  }

  /// Larder's store with every value in it.
  private func filled() throws -> URL {
    try filled("larder") { directory in
      let store = try Store(at: directory)
      _ = try save(everything, in: cache(in: store), store, .each)
      try store.close()
    }
  }

  /// A peer's store with every value in it.
  private func filled(_ kind: PeerKind, _ coder: PeerCoder<Value>) throws -> URL {
    try filled([kind.name, coder.name ?? ""].joined()) { directory in
      _ = try put(everything, in: kind.open(directory), coder, .each)
    }
  }

  private func filled(_ store: String, _ fill: (URL) throws -> Void) throws -> URL {
    let name = "\(values.count) of \(self.name) in \(store)"
    let directory = workspace.directory(name)
    if !FileManager.default.fileExists(atPath: directory.path(percentEncoded: false)) {
      try fill(emptied(name))
    }
    return directory
  }
}
