import Foundation

/// The machine and the commit that the results are from.
struct Machine: Codable {
  let processor: String
  let cores: Int
  let memoryBytes: UInt64
  let system: String
  /// The commit; "-dirty" follows if the tree has other changes than results.
  let commit: String
  let date: Date

  init() {
    let process = ProcessInfo.processInfo
    processor = Self.processorName() ?? "unknown"
    cores = process.activeProcessorCount
    memoryBytes = process.physicalMemory
    system = process.operatingSystemVersionString
    commit = Self.currentCommit() ?? "unknown"
    date = Date()
  }

  private static func currentCommit() -> String? {
    guard let commit = output(of: ["git", "rev-parse", "--short", "HEAD"]) else { return nil }
    let changes = [
      "git", "status", "--porcelain", "--", ":(top)", ":(top,exclude)Benchmarks/Results",
    ]
    return output(of: changes) == nil ? commit : "\(commit)-dirty"
  }

  /// Throws unless the results are of a commit, so that they can be measured again.
  func requireCommit() throws {
    guard commit != "unknown", !commit.hasSuffix("-dirty") else {
      throw UsageError(
        description: "results and plots are of a commit, and not of \(commit): commit the changes, "
          + "or leave --output out")
    }
  }

  var summary: String {
    "\(processor), \(cores) cores, \(memoryBytes >> 30) GiB, \(system), commit \(commit)"
  }

  /// The day of the run, in UTC.
  var day: String { date.formatted(.iso8601.year().month().day()) }

  /// The file system of a directory, with the options of its mount; nil if they are not known.
  static func mount(of directory: URL) -> String? {
    #if os(Linux)
      let path = directory.resolvingSymlinksInPath().path(percentEncoded: false)
      let text = try? String(contentsOfFile: "/proc/self/mounts", encoding: .utf8)
      let mounts = text?.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
      let mount = mounts?.filter { words in
        let root = words[1] == "/" ? "/" : words[1] + "/"
        return words.count > 3 && path.hasPrefix(root)
      }.max { $0[1].utf8.count < $1[1].utf8.count }
      return mount.map { "\($0[2]) (\($0[3]))" }
    #else
      return nil
    #endif
  }

  private static func processorName() -> String? {
    #if os(Linux)
      let text = try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)
      let line = text?.split(separator: "\n").first { $0.hasPrefix("model name") }
      return line?.split(separator: ":").last.map { $0.trimmingCharacters(in: .whitespaces) }
    #else
      return output(of: ["sysctl", "-n", "machdep.cpu.brand_string"])
    #endif
  }

  private static func output(of command: [String]) -> String? {
    let process = Process()
    let pipe = Pipe()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = command
    process.standardOutput = pipe
    process.standardError = FileHandle.nullDevice
    guard (try? process.run()) != nil else { return nil }
    let data = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    let text = String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    return process.terminationStatus == 0 && !text.isEmpty ? text : nil
  }
}
