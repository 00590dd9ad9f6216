import Foundation
import Larder

// Runs every form; each must do what it says.

func check(_ condition: Bool, line: Int = #line) {
  if !condition { fatalError("line \(line) of main.swift does not hold") }
}

let directory = FileManager.default.temporaryDirectory.appending(
  path: "larder-\(UUID().uuidString)")
defer { try? FileManager.default.removeItem(at: directory) }

check(try addUnlessLocked(Note(text: "a"), in: directory) == [])
let store = try Store(at: directory)
check(try addUnlessLocked(Note(text: "b"), in: directory) == nil)
check(try describeFailure(directory).hasPrefix("open in process"))

let small = try store.cache("small", of: Data.self, coder: .bytes, byteBudget: 400)
check(try replace(Data(count: 100), for: "a", in: small).count == 100)
check(try replace(Data(count: 900), for: "a", in: small).count == 100)

try importBytes(Data([1, 2]), into: small, of: store)
check(try small.value(for: "import") == Data([1, 2]))

let notes = try store.cache("notes", of: Note.self)
check(try importLines(Array("b\nc".utf8), into: notes, of: store) == 2)
check(try importLines([0xff], into: notes, of: store) == 0)
do {
  _ = try saveAll([("", Note(text: "d"))], in: notes, of: store)
  fatalError("an error of the closure is lost")
} catch StoreError.invalidArgument {}
check(try together(store) { $0.remove("c", from: notes) } != nil)
var refused = 0
check(try exchange(Note(text: "e"), for: "b", in: notes, refused: &refused) == Note(text: "b"))
var skipped = 0
check(try readable(in: notes, skipped: &skipped) == ["b"] && refused + skipped == 0)

let keeper = try Keeper(store)
let (added, removed) = (try await keeper.add(Note(text: "x"), for: "n"), await reload(notes))
check(added == [] && removed == Note(text: "nothing"))
let list = try await keeper.remove("n")
check(list == [Note(text: "x")])

try store.close()
check(try together(store) { $0.remove("b", from: notes) } == nil)
let (answer, refusal) = (await reload(notes), try await keeper.add(Note(text: "y"), for: "n"))
check(answer == Note(text: "closed") && refusal == [Note(text: "y")])
print("every form of error handling did what it says")
