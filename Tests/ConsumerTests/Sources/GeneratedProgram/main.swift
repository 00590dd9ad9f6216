import Foundation
import Larder

/// Takes only types that are coded directly.
func saveAndRead<T: DirectCoding & Equatable>(_ value: T) throws {
  let store = Store.inMemory()
  let cache = try store.cache("values", of: T.self)
  try cache.save(value, for: "a")
  guard try cache.value(for: "a") == value else { fatalError("the value has changed") }
}

try saveAndRead(Song(id: UUID(), title: "a", subtitle: nil))
print("saved and read with generated functions")
