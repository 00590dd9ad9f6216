package import Larder

/// What a server has under a key.
package enum SharedContent: Sendable {
  case absent
  /// A value, or a tombstone.
  case record(SharedRecord)
  /// Something that is no record of this tier, or of a later version: a load does not replace it.
  case unusable(String)
}

/// The reading of a record from a server.
package struct SharedRead: Sendable {
  package let key: [UInt8]

  package init(_ key: [UInt8]) { self.key = key }

  /// Asks for the record.
  package var command: RESPCommands { ["GET", .bytes(key)] }

  /// What the reply to ``command`` says.
  ///
  /// - Throws: ``SharedFailure/refused(_:)`` for an error that is not about the key.
  package func content(of reply: RESPValue) throws(SharedFailure) -> SharedContent {
    switch reply {
    case .null: return .absent
    case .string(let bytes):
      do throws(RecordFault) {
        return .record(try SharedRecord(bytes, under: key))
      } catch {
        switch error {
        case .damaged: return .unusable("a damaged record")
        case .unsupported(let what): return .unusable(what)
        }
      }
    case .error(let error) where error.code == "WRONGTYPE": return .unusable("no string")
    case .error(let error): throw .refused(error)
    default: return .unusable("no string")
    }
  }

  /// Asks for the version of the record, which is much shorter.
  package var versionCommand: RESPCommands {
    var commands = RESPCommands()
    appendVersionCommand(to: &commands)
    return commands
  }

  func appendVersionCommand(to commands: inout RESPCommands) {
    let start = SharedRecord.versionOffset
    commands.append("GETRANGE", .bytes(key), .number(start), .number(start + 7))
  }

  /// The version in the reply to ``versionCommand``; nil if there is no record.
  ///
  /// A version that a local copy has, too, is that copy's: versions are random numbers. Any other
  /// may be a part of something else.
  ///
  /// - Throws: ``SharedFailure/refused(_:)`` for an error that is not about the key.
  package func version(in reply: RESPValue) throws(SharedFailure) -> UInt64? {
    switch reply {
    case .string(let bytes) where bytes.count == 8: return UInt64(littleEndian: bytes)
    case .error(let error) where error.code != "WRONGTYPE": throw .refused(error)
    default: return nil
    }
  }
}

extension UInt64 {
  /// The number in 8 bytes, of which the first one counts least.
  fileprivate init(littleEndian bytes: [UInt8]) {
    self = bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// The number in 8 bytes, of which the first one counts least.
  var littleEndianBytes: [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: self >> (8 * $0)) } }
}
