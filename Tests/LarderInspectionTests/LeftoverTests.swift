import Foundation
import LarderTestSupport
import Testing

@testable import Larder
import LarderInspection

/// The next process removes the private directories of killed ones, and nothing else.
@Suite struct LeftoverTests {
  private static let guardName = "LARDER.private"

  private func names(in directory: borrowing TemporaryDirectory) throws -> Set<String> {
    Set(try FileManager.default.contentsOfDirectory(atPath: directory.path))
  }

  /// Makes a directory as a killed process leaves it.
  private func leave(_ path: String, mode: Int = 0o700, isGuarded: Bool = true) throws {
    try FileManager.default.createDirectory(
      atPath: path + "/bench/store", withIntermediateDirectories: true)
    try Data("row".utf8).write(to: URL(filePath: path + "/bench/store/000005.ldb"))
    if isGuarded { try Data().write(to: URL(filePath: "\(path)/\(Self.guardName)")) }
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
  }

  @Test("The next run removes a killed run's directory, and not a running one's.")
  func killed() throws {
    let specimen = try largeStore()
    let temporary = try TemporaryDirectory()
    // Each process blocks until its output is read, so it is still running.
    let command = ["ls", specimen.path, "--format", "jsonl"]
    let killed = try Kvinspect(command, temporary: temporary.path)
    #expect(try killed.output.fileHandleForReading.read(upToCount: 10)?.count == 10)
    let left = try names(in: temporary)
    kill(killed.process.processIdentifier, SIGKILL)
    killed.process.waitUntilExit()
    #expect(left.count == 1)
    #expect(try names(in: temporary) == left)

    let running = try Kvinspect(command, temporary: temporary.path)
    #expect(try running.output.fileHandleForReading.read(upToCount: 10)?.count == 10)
    let own = try names(in: temporary)
    #expect(own.count == 1 && own != left)

    #expect(try Kvinspect(["info", specimen.path], temporary: temporary.path).finish().status == 0)
    #expect(try names(in: temporary) == own)
    let finished = try running.finish()
    #expect(finished.status == 0 && finished.output.split(separator: "\n").count == 20_010)
    #expect(try names(in: temporary) == [])
  }

  @Test("A leftover directory is removed with its subdirectories, and links are not followed.")
  func trees() throws {
    let temporary = try TemporaryDirectory()
    let outside = temporary.path("outside")
    try leave(outside)
    let left = temporary.path("kvinspect-aaaaaa")
    try leave(left)
    for (name, target) in [("file", "\(outside)/\(Self.guardName)"), ("directory", outside)] {
      try FileManager.default.createSymbolicLink(
        atPath: "\(left)/\(name)", withDestinationPath: target)
    }
    let before = try FileFacts.all(in: outside)

    _ = try #require(PrivateDirectory(in: temporary.path, named: "kvinspect-"))

    #expect(try names(in: temporary) == ["outside"])
    #expect(try FileFacts.all(in: outside) == before)
  }

  @Test("Files that no killed process of this user left are not touched.")
  func others() throws {
    let temporary = try TemporaryDirectory()
    let real = temporary.path("elsewhere")
    try leave(real)
    try leave(temporary.path("kvinspect-public"), mode: 0o755)
    try leave(temporary.path("kvinspect-backup"), isGuarded: false)
    try leave(temporary.path("kvinspect-linked"), isGuarded: false)
    try FileManager.default.createSymbolicLink(
      atPath: temporary.path("kvinspect-linked/\(Self.guardName)"),
      withDestinationPath: "\(real)/\(Self.guardName)")
    try FileManager.default.createSymbolicLink(
      atPath: temporary.path("kvinspect-symbol"), withDestinationPath: real)
    try Data("file".utf8).write(to: URL(filePath: temporary.path("kvinspect-afile0")))
    try leave(temporary.path("other-aaaaaa"))
    if isSuperuser {
      try leave(temporary.path("kvinspect-theirs"))
      give(temporary.path("kvinspect-theirs"), toUser: 12_345)
    }
    func everything() throws -> [String: FileFacts] {
      let root = temporary.path
      let paths = FileManager.default.enumerator(atPath: root)?.compactMap { $0 as? String } ?? []
      return try Dictionary(
        uniqueKeysWithValues: paths.map { ($0, try FileFacts(of: "\(root)/\($0)")) })
    }
    let before = try everything()
    #expect(before.count > 25)

    var own: PrivateDirectory? = PrivateDirectory(in: temporary.path, named: "kvinspect-")
    #expect(own != nil)
    // A second directory of this process is in use, too.
    let second = PrivateDirectory(in: temporary.path, named: "kvinspect-")
    #expect(try own.map { try SystemFiles().names(in: $0.path) } == [Self.guardName])
    #expect(second != nil)
    own = nil
    withExtendedLifetime(second) {}

    #expect(try everything().filter { before[$0.key] != nil } == before)
  }

  @Test("A private directory keeps its guard file when it is emptied.")
  func emptied() throws {
    let temporary = try TemporaryDirectory()
    let directory = try #require(PrivateDirectory(in: temporary.path, named: "kvinspect-"))
    try Data("x".utf8).write(to: URL(filePath: directory.path + "/file"))

    try directory.empty()

    #expect(try SystemFiles().names(in: directory.path) == [Self.guardName])
  }
}
