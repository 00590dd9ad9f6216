/// How the values of a type are coded.
protocol CodingForm {
  /// Finds the form of a type; one that `parts` knows is coded by its part.
  init(of type: Any.Type, parts: (any StreamParts.Type)?)
}

/// The forms of the types that were last coded; a dynamic cast takes as long as a small value.
struct FormCache<Form: CodingForm>: ~Copyable {
  private struct Entry {
    let type: ObjectIdentifier
    let form: Form
  }

  /// A power of two.
  private static var capacity: Int { 64 }

  // Unsafe: `capacity` entries, allocated with the first type, and freed in `deinit`.
  private var entries: UnsafeMutablePointer<Entry>?
  /// Finds the types that are coded without `Codable`; nil if none are.
  private var parts: (any StreamParts.Type)?

  deinit { free() }

  /// Codes the types that `parts` knows without `Codable` from now on.
  mutating func use(_ parts: (any StreamParts.Type)?) {
    guard parts.map({ ObjectIdentifier($0) }) != self.parts.map({ ObjectIdentifier($0) }) else {
      return
    }
    self.parts = parts
    // They depend on the parts.
    free()
    entries = nil
  }

  @inline(__always)
  mutating func form(of type: Any.Type) -> Form {
    let id = ObjectIdentifier(type)
    // The addresses of types are multiples of 8.
    let bits = UInt(bitPattern: id) >> 3
    let index = Int((bits ^ (bits >> 6)) & UInt(Self.capacity - 1))
    if let entries, entries[index].type == id { return entries[index].form }
    return newForm(of: type, index)
  }

  @inline(never)
  private mutating func newForm(of type: Any.Type, _ index: Int) -> Form {
    let entries = self.entries ?? Self.allocate()
    self.entries = entries
    entries[index] = Entry(type: ObjectIdentifier(type), form: Form(of: type, parts: parts))
    return entries[index].form
  }

  private static func allocate() -> UnsafeMutablePointer<Entry> {
    let entries = UnsafeMutablePointer<Entry>.allocate(capacity: capacity)
    // An entry right for its type, wherever it stands.
    entries.initialize(
      repeating: Entry(
        type: ObjectIdentifier(Never.self), form: Form(of: Never.self, parts: nil)),
      count: capacity)
    return entries
  }

  private func free() {
    guard let entries else { return }
    entries.deinitialize(count: Self.capacity)
    entries.deallocate()
  }
}
