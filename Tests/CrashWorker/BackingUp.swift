import Larder

/// Makes backups of a store, or restores one, repeatedly until it is killed.
///
/// Prints the name before each, and "made" after it.
enum BackingUp {
  static func run(in path: String, restoring: Bool) throws(StoreError) {
    let engine = restoring ? nil : try LevelDBEngine(at: "\(path)/store")
    var number = 0
    while true {
      let name = "\(path)/\(restoring ? "restored" : "backup")-\(number)"
      CrashWorker.say(name)
      if let engine {
        try engine.backup(to: name, date: 0)
      } else {
        try Backup(at: "\(path)/backup").restore(to: name)
      }
      CrashWorker.say("made")
      number += 1
    }
  }
}
