import Foundation

/// What a ``MemoryCache`` holds: a decoded value, in a subclass that knows its type.
package class Resident {
  /// The date from which on the value is not returned from memory, in seconds since the reference
  /// date; infinity for never.
  let validUntil: Double
  /// The epoch of invalidated tags in which a tagged entry was read; nil for one without tags.
  let tagEpoch: UInt64?
  /// While it runs, the value is what a shared tier has; nil if the tier was not asked.
  let lease: Lease?

  init(validUntil: Double, tagEpoch: UInt64?, lease: Lease? = nil) {
    (self.validUntil, self.tagEpoch, self.lease) = (validUntil, tagEpoch, lease)
  }

  /// An object that is always valid, to measure and test the policy.
  package convenience init() { self.init(validUntil: .infinity, tagEpoch: nil) }
}

// @unchecked: it and its subclass have constants only, all of them Sendable.
extension Resident: @unchecked Sendable {}

/// The decoded value of a fresh entry, with what an ``Entry`` has besides.
// @unchecked: restates the conformance of its superclass.
final class ResidentEntry<Value: Sendable>: Resident, @unchecked Sendable {
  let savedAt: Date
  let version: Version
  let validator: Validator?
  let tags: [String]
  let ownLifetime: OwnLifetime?
  let value: Value

  init(
    _ value: Value, of record: Record, in bytes: RawSpan, validator: Validator?,
    ownLifetime: OwnLifetime?, validUntil: Double, tagEpoch: UInt64?
  ) {
    savedAt = record.savedAt
    version = Version(record)
    self.validator = validator
    tags = record.tags == nil ? [] : Tags(of: record, in: bytes)?.texts ?? []
    self.ownLifetime = ownLifetime
    self.value = value
    super.init(validUntil: validUntil, tagEpoch: tagEpoch)
  }

  /// The entry of a shared cache, which has no tags.
  init(_ entry: Entry<Value>, validUntil: Double, lease: Lease) {
    (savedAt, version, validator) = (entry.savedAt, entry.version, entry.validator)
    (tags, ownLifetime, value) = ([], entry.ownLifetime, entry.value)
    super.init(validUntil: validUntil, tagEpoch: nil, lease: lease)
  }
}

extension Entry {
  /// The entry of a value that was in memory.
  init(_ resident: ResidentEntry<Value>, readAt: Date) {
    self.init(
      value: resident.value, savedAt: resident.savedAt, readAt: readAt, origin: .memory,
      version: resident.version, validator: resident.validator, tags: resident.tags,
      ownLifetime: resident.ownLifetime)
  }
}
