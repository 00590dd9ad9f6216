import ExampleSupport
import Foundation
import Larder
import LarderTesting

// The program of the guide "Getting started".

struct Article: Codable, Sendable {
  var title: String
}

let directory = try temporaryDirectory()

let clock = ManualClock()
var options = Store.Options()
options.clock = clock
let store = try Store(at: directory, options: options)

let articles = try store.cache("articles", of: [Article].self, lifetime: .hours(1))
try articles.save([Article(title: "Rain"), Article(title: "Sun")], for: "front page")

if let list = try articles.value(for: "front page") {
  print("fresh: \(list.map(\.title).joined(separator: ", "))")
}
expect(try articles.contains("front page"), "a fresh entry")

clock.advance(by: .seconds(3600))
let list = try articles.value(for: "front page")
print(list == nil ? "an hour later: nothing fresh" : "still fresh")
expect(list == nil, "the entry has expired")

switch try articles.lookup(for: "front page") {
case .fresh(let entry): print("fresh, \(entry.value.count) articles")
case .stale(let entry): print("stale, use it if the server cannot be reached: \(entry.value)")
case .expired(let metadata): print("expired, \(metadata.age) old")
case .missing: print("never saved")
}

clock.advance(by: .seconds(60))
print("deleted by a sweep: \(try store.sweep())")
expect(try articles.remove("front page") == false, "the entry is deleted")
try store.close()
try FileManager.default.removeItem(at: directory)
