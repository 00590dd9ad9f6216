package import Foundation

// The per-type functions behind `FieldWriter` and `FieldReader` of module Larder. All of them make
// the same generic call; here, unlike in another module, the compiler specializes it.

extension DirectWriter {
  package mutating func write(_ value: Bool, as name: StaticString) { put(value, name) }
  package mutating func write(_ value: Int, as name: StaticString) { put(value, name) }
  package mutating func write(_ value: Double, as name: StaticString) { put(value, name) }
  package mutating func write(_ value: String, as name: StaticString) { put(value, name) }
  package mutating func write(_ value: Data, as name: StaticString) { put(value, name) }
  package mutating func write(_ value: Date, as name: StaticString) { put(value, name) }
  package mutating func write(_ value: URL, as name: StaticString) {
    // A URL with a base is stored as an object.
    if value.baseURL != nil { needsFallback = true }
    put(value, name)
  }
  package mutating func write(_ value: UUID, as name: StaticString) { put(value, name) }

  package mutating func writeIfPresent(_ value: Bool?, as name: StaticString) {
    putIfPresent(value, name)
  }
  package mutating func writeIfPresent(_ value: Int?, as name: StaticString) {
    putIfPresent(value, name)
  }
  package mutating func writeIfPresent(_ value: Double?, as name: StaticString) {
    putIfPresent(value, name)
  }
  package mutating func writeIfPresent(_ value: String?, as name: StaticString) {
    putIfPresent(value, name)
  }
  package mutating func writeIfPresent(_ value: Data?, as name: StaticString) {
    putIfPresent(value, name)
  }
  package mutating func writeIfPresent(_ value: Date?, as name: StaticString) {
    putIfPresent(value, name)
  }
  package mutating func writeIfPresent(_ value: URL?, as name: StaticString) {
    if value?.baseURL != nil { needsFallback = true }
    putIfPresent(value, name)
  }
  package mutating func writeIfPresent(_ value: UUID?, as name: StaticString) {
    putIfPresent(value, name)
  }
}

extension DirectReader {
  package mutating func read(_ name: StaticString) throws(Fault) -> Bool { try take(name) }
  package mutating func read(_ name: StaticString) throws(Fault) -> Int { try take(name) }
  package mutating func read(_ name: StaticString) throws(Fault) -> Double { try take(name) }
  package mutating func read(_ name: StaticString) throws(Fault) -> String { try take(name) }
  package mutating func read(_ name: StaticString) throws(Fault) -> Data { try take(name) }
  package mutating func read(_ name: StaticString) throws(Fault) -> Date { try take(name) }
  package mutating func read(_ name: StaticString) throws(Fault) -> URL { try take(name) }
  package mutating func read(_ name: StaticString) throws(Fault) -> UUID { try take(name) }

  package mutating func readIfPresent(_ name: StaticString) throws(Fault) -> Bool? {
    try takeIfPresent(name)
  }
  package mutating func readIfPresent(_ name: StaticString) throws(Fault) -> Int? {
    try takeIfPresent(name)
  }
  package mutating func readIfPresent(_ name: StaticString) throws(Fault) -> Double? {
    try takeIfPresent(name)
  }
  package mutating func readIfPresent(_ name: StaticString) throws(Fault) -> String? {
    try takeIfPresent(name)
  }
  package mutating func readIfPresent(_ name: StaticString) throws(Fault) -> Data? {
    try takeIfPresent(name)
  }
  package mutating func readIfPresent(_ name: StaticString) throws(Fault) -> Date? {
    try takeIfPresent(name)
  }
  package mutating func readIfPresent(_ name: StaticString) throws(Fault) -> URL? {
    try takeIfPresent(name)
  }
  package mutating func readIfPresent(_ name: StaticString) throws(Fault) -> UUID? {
    try takeIfPresent(name)
  }
}
