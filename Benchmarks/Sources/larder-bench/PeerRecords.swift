import Foundation
import Larder

/// Encodes values to a peer's payloads, and compares payloads with values.
struct PeerCoder<Value: Sendable> {
  /// Nil if the value is the payload.
  let name: String?
  /// Lends a value's payload, which may be encoded into the buffer.
  let withPayload: (Value, inout ByteBuffer, (RawSpan) throws -> Void) throws -> Void
  /// Whether a payload decodes to the value.
  let matches: (RawSpan, Value) throws -> Bool
}

extension PeerCoder where Value: Codable {
  /// JSON, with one encoder and one decoder for all values.
  static func json(_ isSame: @escaping (Value, Value) -> Bool) -> PeerCoder {
    let (encoder, decoder) = (JSONEncoder(), JSONDecoder())
    return PeerCoder(
      name: "JSON", withPayload: { value, _, body in try body(encoder.encode(value).span.bytes) },
      matches: { bytes, value in
        try withData(bytes) { isSame(try decoder.decode(Value.self, from: $0), value) }
      })
  }

  /// Larder's binary coder.
  static func binary(_ isSame: @escaping (Value, Value) -> Bool) -> PeerCoder {
    let coder = Coder<Value>.binary
    return PeerCoder(
      name: "binary",
      withPayload: { value, buffer, body in
        buffer.truncate(to: 0)
        try coder.encode(value, &buffer)
        try buffer.withBytes { try body($0.bytes) }
      },
      matches: { bytes, value in isSame(try coder.decode(bytes), value) })
  }
}

extension PeerCoder<Data> {
  static var bytes: PeerCoder {
    PeerCoder(
      name: nil, withPayload: { value, _, body in try body(value.span.bytes) },
      matches: { bytes, value in areEqual(bytes, value.span.bytes) })
  }
}

/// The same records in Larder and in another store, saved and read in the same order.
///
/// The key of a record is the index of its value. Each run of saves has a new directory; reads use
/// one that was filled by the same saves. Both are closed after the measured time.
struct PeerRecords<Value: Codable & Sendable> {
  let name: String
  var values: [Value]
  /// Saves or reads per run, over the values in rotation.
  var operations: Int
  /// Records per batch.
  var batchSize = 256
  /// The expiry date in seconds; nil for records that never expire and have no index.
  var expires: Double?
  var coder: Coder<Value> = .binary
  let isSame: (Value, Value) -> Bool
  let workspace: Workspace

  enum Saving { case single, batched }

  /// The same records, limited to the numbers of a store kind.
  func limited(for kind: PeerKind) -> PeerRecords {
    var fewer = self
    fewer.values = Array(values.prefix(kind.mostRecords))
    fewer.operations = min(operations, kind.mostOperations)
    return fewer
  }

  // MARK: - Contests

  func saving(
    _ label: String, _ kind: PeerKind, _ peerCoder: PeerCoder<Value>, goal: Double?,
    _ saving: Saving = .single
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
          try peer.get(key) { try peerCoder.matches($0, values[key]) }
        }
        return time
      })
  }

  func retrieving(
    _ label: String, _ kind: PeerKind, _ peerCoder: PeerCoder<Value>, goal: Double?
  ) -> Contest {
    let order = order(seed: Scale.seed + 2, operations)
    return Contest(
      name: label + against(kind, peerCoder), operations: operations, goal: goal,
      a: {
        let store = try Store(at: filled(), options: .withoutMemory)
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
          for key in order where try peer.get(key, { try peerCoder.matches($0, values[key]) }) {
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

  /// The first `count` indices of all values in rotation, shuffled differently in each pass.
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
    case .single:
      for key in order { try cache.save(values[key], for: key) }
    case .batched:
      for start in stride(from: 0, to: order.count, by: batchSize) {
        try store.write { batch in
          for key in order[start..<min(start + batchSize, order.count)] {
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
        try coder.withPayload(values[key], &buffer) { try peer.put(key, $0, expires: expires) }
      }
    }
    switch saving {
    case .single: try put(order[...])
    case .batched:
      for start in stride(from: 0, to: order.count, by: batchSize) {
        try peer.batch { try put(order[start..<min(start + batchSize, order.count)]) }
      }
    }
    return order.count
  }

  /// Checks the last 100 saved records.
  private func expectSaved(_ order: [Int], _ isSaved: (Int) throws -> Bool) throws {
    guard try order.suffix(100).allSatisfy(isSaved) else {
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

  /// The directory of Larder's store with all values.
  private func filled() throws -> URL {
    try filled("larder") { directory in
      let store = try Store(at: directory)
      _ = try save(everything, in: cache(in: store), store, .single)
      try store.close()
    }
  }

  /// The directory of a peer's store with all values.
  private func filled(_ kind: PeerKind, _ coder: PeerCoder<Value>) throws -> URL {
    try filled([kind.name, coder.name ?? ""].joined()) { directory in
      _ = try put(everything, in: kind.open(directory), coder, .single)
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
