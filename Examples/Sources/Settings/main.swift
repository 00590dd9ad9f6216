import ExampleSupport
import Foundation
import Larder

// The settings of an app's users, which never expire. Their type has changed twice. Release 3 reads
// the settings of releases 1 and 2, and rewrites them. It keeps the settings of release 4, which it
// cannot read.

/// The settings of release 1.
struct SettingsV1: Codable, Sendable {
  var isDark: Bool
}

/// The settings of release 2: a theme instead of a switch.
struct SettingsV2: Codable, Sendable {
  var theme: String

  init(theme: String) { self.theme = theme }
  init(_ old: SettingsV1) { theme = old.isDark ? "dark" : "light" }
}

/// The settings of release 3, with the size of the text.
struct UserSettings: Codable, Sendable, Equatable {
  var theme = "light"
  var textSize = 12

  init(theme: String = "light", textSize: Int = 12) {
    (self.theme, self.textSize) = (theme, textSize)
  }
  init(_ old: SettingsV2) { theme = old.theme }
}

/// The settings of release 4, which release 3 does not know.
struct SettingsV4: Codable, Sendable {
  var themes: [String]
}

/// Release 3: the program that this example is about.
struct App {
  let store: Store
  let settings: Cache<String, UserSettings>

  init(at directory: URL) throws {
    store = try Store(at: directory)
    settings = try store.cache(
      "settings", of: UserSettings.self, lifetime: .unlimited,
      schema: Schema(version: 3)
        .reading(1, as: SettingsV1.self) { UserSettings(SettingsV2($0)) }
        .reading(2, as: SettingsV2.self) { UserSettings($0) })
  }

  /// A user's settings; the defaults if there are none, or if only a newer release can read them.
  func settings(of user: String) throws -> UserSettings {
    do {
      return try settings.value(for: user) ?? UserSettings()
    } catch StoreError.newerSchema {
      return UserSettings()
    }
  }

  /// Saves a user's settings; returns false if those of a newer release are there, which are kept.
  func save(_ new: UserSettings, of user: String) throws -> Bool {
    do {
      try settings.save(new, for: user, durability: .powerLoss)
      return true
    } catch StoreError.newerSchema {
      return false
    }
  }
}

/// Runs `work` as another release of the app: with its type and its version.
func release<Value: Codable & Sendable>(
  _ version: Int, _ type: Value.Type, _ work: (Cache<String, Value>) throws -> Void
) throws {
  let store = try Store(at: directory)
  let settings = try store.cache(
    "settings", of: type, lifetime: .unlimited, schema: Schema(version: version))
  try work(settings)
  try store.close()
}

let directory = try temporaryDirectory()

try release(1, SettingsV1.self) { try $0.save(SettingsV1(isDark: true), for: "ada") }
print("Release 1 saves the settings of ada.")
try release(2, SettingsV2.self) { try $0.save(SettingsV2(theme: "sepia"), for: "ben") }
print("Release 2 saves the settings of ben.")

var app = try App(at: directory)
for (user, theme) in [("ada", "dark"), ("ben", "sepia"), ("cleo", "light")] {
  let settings = try app.settings(of: user)
  print("Release 3 reads \(user): \(settings.theme), text size \(settings.textSize)")
  expect(settings == UserSettings(theme: theme), "\(user) has the theme \(theme)")
}

// Old settings stay on disk as they are until they are saved again, or until all are rewritten.
// After that, a later release needs no SettingsV1 and SettingsV2.
let report = try app.store.migrate(app.settings)
print("It rewrites \(report.migrated) entries; \(report.unreadable) are unreadable.")
expect(report.migrated == 2 && report.unreadable == 0, "both entries are rewritten")
expect(try app.store.migrate(app.settings).current == 2, "both entries are current")
try app.store.close()

try release(4, SettingsV4.self) { try $0.save(SettingsV4(themes: ["blue", "red"]), for: "ada") }
print("Release 4 saves the settings of ada. Then she returns to release 3.")

app = try App(at: directory)
print("Release 3 shows ada the defaults: \(try app.settings(of: "ada").theme)")
let isSaved = try app.save(UserSettings(theme: "green"), of: "ada")
print("It \(isSaved ? "replaces" : "keeps") the settings of release 4.")
expect(!isSaved, "release 3 does not overwrite the settings of release 4")
expect(try app.save(UserSettings(textSize: 14), of: "ben"), "other settings can be saved")
try app.store.close()

try release(4, SettingsV4.self) { settings in
  let themes = try settings.value(for: "ada")?.themes ?? []
  print("Release 4 still reads ada: \(themes.joined(separator: " and "))")
  expect(themes == ["blue", "red"], "the settings of release 4 are unchanged")
}
try FileManager.default.removeItem(at: directory)
