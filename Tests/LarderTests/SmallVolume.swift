import Foundation
import LarderTestSupport

/// A small file system of the system's own, mounted for one test.
///
/// Only the superuser can mount one, and not everywhere.
final class SmallVolume {
  enum Kind: String, CaseIterable {
    case tmpfs, ext4
  }

  let directory: URL
  private let image: URL?

  /// Whether this process can mount a volume of a kind.
  static func isAllowed(_ kind: Kind) -> Bool {
    do {
      _ = try SmallVolume(kind, megabytes: 8)
      return true
    } catch {
      return false
    }
  }

  init(_ kind: Kind, megabytes: Int) throws {
    let name = TemporaryDirectory.place
      .appending(path: "larder-volume-\(UUID().uuidString)")
    let mountPoint = name.path(percentEncoded: false)
    directory = name
    image = kind == .ext4 ? name.appendingPathExtension("image") : nil
    try FileManager.default.createDirectory(at: name, withIntermediateDirectories: false)
    switch kind {
    case .tmpfs:
      try Self.run("mount", "-t", "tmpfs", "-o", "size=\(megabytes)m", "tmpfs", mountPoint)
    case .ext4:
      let file = mountPoint + ".image"
      try Self.run("truncate", "-s", "\(megabytes)M", file)
      try Self.run("mkfs.ext4", "-q", file)
      try Self.run("mount", "-o", "loop", file, mountPoint)
    }
  }

  deinit {
    do {
      try Self.run("umount", directory.path(percentEncoded: false))
    } catch {
      // It was not mounted.
    }
    for url in [directory, image].compactMap(\.self) {
      do {
        try FileManager.default.removeItem(at: url)
      } catch {
        continue
      }
    }
  }

  /// Has a file take all room that is left.
  func fill() throws {
    let file = directory.appending(path: "rest")
    try Data().write(to: file)
    let handle = try FileHandle(forWritingTo: file)
    for size in [1 << 20, 1 << 12, 1] {
      let piece = Data(repeating: 1, count: size)
      do {
        while true { try handle.write(contentsOf: piece) }
      } catch {
        continue
      }
    }
    try handle.close()
  }

  private struct Failure: Error {
    let command: String
  }

  /// Runs a program of the system; its last line says that it succeeded.
  private static func run(_ words: String...) throws {
    let script = "\"$@\" >/dev/null 2>&1 && echo done"
    var shell = try ChildProcess("/bin/sh", ["-c", script, "sh"] + words)
    guard shell.readLine() == "done" else { throw Failure(command: words.joined(separator: " ")) }
  }
}
