import Synchronization

/// An enum that reads and writes its own cases in the binary format, several times faster than
/// `Codable`.
///
/// ```swift
/// enum Event: Codable, Sendable {
///   case opened(url: String, at: Date?)
///   case note(String)
///   case closed
/// }
///
/// extension Event: DirectEnum {
///   init?(case name: String, from fields: inout FieldReader) throws {
///     switch name {
///     case "opened":
///       self = .opened(url: try fields.read("url"), at: try fields.readIfPresent("at"))
///     case "note": self = .note(try fields.read("_0"))
///     case "closed": self = .closed
///     default: return nil
///     }
///   }
///
///   func write(to fields: inout FieldWriter) {
///     switch self {
///     case .opened(let url, let at):
///       fields.writeCase("opened")
///       fields.write(url, as: "url")
///       fields.writeIfPresent(at, as: "at")
///     case .note(let text):
///       fields.writeCase("note")
///       fields.write(text, as: "_0")
///     case .closed:
///       fields.writeCase("closed")
///     }
///   }
/// }
/// ```
///
/// `swift package generate-direct-coding` writes the extension: see <doc:GeneratingDirectCoding>.
///
/// What holds for a ``DirectCoding`` type holds for the fields of each case. The format is that of
/// the `Codable` conformance that the compiler makes for an enum: the fields of a case are named by
/// the labels of its values, and `_0`, `_1` and so on where a value has no label. An enum with raw
/// values is not coded so, and needs no such conformance.
///
/// Such values are coded directly wherever those of a ``DirectCoding`` type are.
public protocol DirectEnum: Codable, Sendable {
  /// Creates a value of the case with that name from the fields of the case.
  ///
  /// Returns nil if there is no such case. The value is then decoded again through `Codable`, as it
  /// is if the initialiser throws, and the `Codable` error is reported.
  init?(case name: String, from fields: inout FieldReader) throws

  /// Writes the case of this value with ``FieldWriter/writeCase(_:)``, and then its fields.
  func write(to fields: inout FieldWriter)
}

/// An internal error: the value is decoded again through `Codable`, which reports the case.
private struct UnknownCase: Error {}

/// Writes and reads the values of an enum.
// @unchecked: all state is atomic, and the memory it points to is immutable.
final class EnumPart<Value: DirectEnum>: DirectPart, @unchecked Sendable {
  /// The number of values of unknown cases after which no more case is looked for.
  private static var maximumMisfits: Int { 16 }

  // Unsafe: the memory never changes once published. It is not freed, as the part is not.
  /// The newest of the known cases; each case links to the one learned before it.
  private let cases = Atomic<UnsafePointer<WrittenCase>?>(nil)
  /// The number of values that have shown no case.
  private let misfits = Atomic<Int>(0)

  func write(at place: UnsafeRawPointer, to fields: inout FieldWriter) {
    write(inPlace(place).pointee, to: &fields)
  }

  private func write(_ place: borrowing InPlace<Value>, to fields: inout FieldWriter) {
    for _ in 0..<2 {
      guard let outer = fields.base.beginEnum(cases.load(ordering: .acquiring)) else { return }
      place.value.write(to: &fields)
      if fields.base.endEnum(outer) { return }
      guard learnCase(of: place.value) else { break }
    }
    fields.base.encodePart(place.value, parts: DirectParts.self)
  }

  func read<T: Decodable>(_ place: WirePlace, from fields: inout FieldReader) throws -> T {
    guard let (name, outer) = try fields.base.enterCase(place) else {
      return try fields.base.decodePart(place, parts: DirectParts.self)
    }
    guard let value = try Value(case: name, from: &fields) else { throw UnknownCase() }
    try fields.base.leaveCase(outer)
    return same(value)
  }

  /// Adds the case of a value to those that are known; false if it cannot be written directly.
  private func learnCase(of value: Value) -> Bool {
    guard misfits.load(ordering: .relaxed) < Self.maximumMisfits else { return false }
    guard let learned = learned(from: value) else {
      misfits.add(1, ordering: .relaxed)
      return false
    }
    let new = UnsafeMutablePointer<WrittenCase>.allocate(capacity: 1)
    new.initialize(to: learned)
    var expected = cases.load(ordering: .acquiring)
    // Another thread may have added the case.
    while learned.known(among: expected) == nil {
      new.pointee.older = expected
      let (isDone, found) = cases.compareExchange(
        expected: expected, desired: UnsafePointer(new), ordering: .acquiringAndReleasing)
      if isDone { return true }
      expected = found
    }
    new.deallocate()
    return true
  }

  /// The case that a value shows; nil if it has no shape, or lacks a field that `Codable` writes.
  private func learned(from value: Value) -> WrittenCase? {
    guard let learned = WrittenCase(FieldWriter.fields(writtenBy: value.write)) else { return nil }
    do {
      if try learned.hasAllFields(of: value) { return learned }
    } catch {
      // The value is then encoded through `Codable`, which throws the error.
    }
    return nil
  }
}
