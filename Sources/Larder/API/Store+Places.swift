package import Foundation

extension Store {
  /// Opens a store in the user's folder for caches, or creates it there with the folders above it.
  ///
  /// ```swift
  /// let store = try Store.inCaches("shop/feeds")   // ~/.cache/shop/feeds on Linux
  /// ```
  ///
  /// The folder is `$XDG_CACHE_HOME` or `~/.cache` on Linux, and `~/Library/Caches`, or the one of
  /// the app's container, on macOS. Backups leave it out. While the program does not run, users may
  /// delete the folder's contents, and the system may if its disk is full. The next opening then
  /// creates an empty store. Folders that are created are readable by their owner only.
  ///
  /// - Parameters:
  ///   - name: The name of the store's directory: one or more names of folders with `/` between
  ///     them, such as the program's and the store's. Each has 1 to 255 bytes and is not `.` or
  ///     `..`.
  ///   - options: See ``Options``.
  /// - Returns: The store.
  /// - Throws: ``StoreError/invalidArgument(_:)`` for another name, and the errors of
  ///   ``init(at:options:)``. Folders that were created stay.
  /// - Complexity: As ``init(at:options:)``.
  public static func inCaches(_ name: String, options: Options = Options()) throws -> Store {
    guard
      let folder = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first
    else { throw StoreError.io("the user has no folder for caches") }
    return try inFolder(folder, name, options: options)
  }

  /// The same, in another folder.
  package static func inFolder(
    _ folder: URL, _ name: String, options: Options
  ) throws -> Store {
    let names = name.split(separator: "/", omittingEmptySubsequences: false)
    for name in names {
      let isAllowed = (1...255).contains(name.utf8.count) && !name.utf8.contains(0)
      guard isAllowed, name != ".", name != ".." else {
        throw StoreError.invalidArgument(
          """
          "\(String(name).escapedForTerminal)" is not a name of a folder: 1 to 255 bytes, without \
          a NUL, and not . or ..
          """)
      }
    }
    var directory = folder
    for name in names.dropLast() { directory.append(path: String(name)) }
    if options.createIfMissing, options.access == .readWrite {
      try makeFolders(to: path(of: directory))
    }
    directory.append(path: String(names[names.count - 1]))
    return try Store(at: directory, options: options)
  }

  private static func makeFolders(to path: String) throws(StoreError) {
    let files = SystemFiles()
    var missing: [String] = []
    var folder = path
    while folder != "/", try files.kind(of: folder) == nil {
      missing.append(folder)
      folder = String(folder.prefix(upTo: folder.lastIndex(of: "/") ?? folder.startIndex))
      if folder.isEmpty { folder = "/" }
    }
    for folder in missing.reversed() { try files.makeDirectory(folder) }
  }
}

// MARK: - In memory

extension Store {
  /// Makes a store in memory, which is freed with its last reference.
  ///
  /// ```swift
  /// let store = Store.inMemory()   // for a test or a preview
  /// ```
  ///
  /// It behaves like a store on disk. Applications use it when their directory cannot be opened.
  ///
  /// - Parameter options: See ``Options``; only the clock and the budget are used. A budget below 1
  ///   is a programmer error and traps.
  /// - Returns: An empty store.
  public static func inMemory(options: Options = Options()) -> Store {
    Store(inMemory: InMemoryEngine(), options: options)
  }
}
