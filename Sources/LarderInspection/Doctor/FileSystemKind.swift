import Foundation

/// The kind of file system that a store is on.
enum FileSystemKind: Equatable {
  case local
  case network(String)
  case memory(String)

  private static let networkTypes: Set<String> = [
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "afpfs", "webdav", "9p", "afs", "ceph", "glusterfs",
    "lustre", "fuse.sshfs", "fuse.s3fs", "fuse.glusterfs", "fuse.rclone", "virtiofs",
  ]

  /// The kind of a file system of this type.
  init(type: String) {
    if Self.networkTypes.contains(type) {
      self = .network(type)
    } else if type == "tmpfs" || type == "ramfs" {
      self = .memory(type)
    } else {
      self = .local
    }
  }

  /// The kind of the file system at an absolute path without links; `local` if it is not known.
  init(of path: String) throws(InspectionError) {
    #if canImport(Darwin)
      var status = statfs()
      guard statfs(path, &status) == 0 else {
        self = .local
        return
      }
      let type = withUnsafeBytes(of: &status.f_fstypename) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      self.init(type: type)
    #else
      let table = try FileAccess.read("/proc/self/mountinfo") ?? []
      self.init(type: Self.type(of: path, in: String(decoding: table, as: UTF8.self)) ?? "")
    #endif
  }

  /// The type of the file system of a path, by Linux's list of mounts; nil if it has none.
  ///
  /// A line of it is "ID PARENT DEVICE ROOT POINT OPTIONS... - TYPE SOURCE OPTIONS", where a space
  /// in a path is "\040". Later mounts cover earlier ones.
  static func type(of path: String, in table: String) -> String? {
    var found: (point: String, type: String)?
    for line in table.split(separator: "\n") {
      let words = line.split(separator: " ")
      guard words.count > 5, let dash = words.lastIndex(of: "-"), dash + 1 < words.count else {
        continue
      }
      let point = String(words[4]).replacing("\\040", with: " ")
      guard path == point || path.hasPrefix(point == "/" ? "/" : point + "/"),
        point.utf8.count >= found?.point.utf8.count ?? 0
      else { continue }
      found = (point, String(words[dash + 1]))
    }
    return found?.type
  }
}
