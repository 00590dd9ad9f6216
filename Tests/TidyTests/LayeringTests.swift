import Testing

/// The layers depend on each other in one direction, and users see one module, `Larder`.
@Suite struct LayeringTests {
  private let tree = SourceTree.repository
  private var sources: [SourceFile] { tree.files(under: "Sources").filter(\.isSwift) }

  @Test("Every target imports only the modules in the table.")
  func imports() {
    Layers.allowedImports.expectHolds(in: sources)
  }

  @Test("A target imports only targets declared above it in the manifest.")
  func order() throws {
    let manifest = try #require(tree.file(at: "Package.swift"))
    Layers.order(of: Layers.targets(in: manifest)).expectHolds(in: sources)
  }

  @Test("Every target in `Sources` has a row in the table.")
  func tableRows() {
    let targets = Set(sources.compactMap(\.target))
    #expect(targets.subtracting(Layers.table.keys) == [])
  }

  @Test("Only the engine and its benchmark opponent import the C code.")
  func shim() {
    Layers.shimImport.expectHolds(in: tree.files(under: "Sources"))
  }

  @Test("A layer within `Larder` names no type of other folders, but those that it may know.")
  func folders() {
    for (folder, known) in Layers.folders {
      let own = tree.files(under: folder)
      let others = tree.files(under: "Sources/Larder").filter { file in
        !([folder] + known).contains(where: file.isUnder)
      }
      #expect(!own.isEmpty, "\(folder)")
      Layers.uses(ofTypesIn: others, insteadOf: own).expectHolds(in: own)
    }
  }

  @Test("Only the shim and the simulated disk include LevelDB's headers.")
  func headers() {
    Layers.levelDBHeaders.expectHolds(
      in: tree.files(under: "Sources") + tree.files(under: "Tests"))
  }

  @Test("The inner layers declare nothing public.")
  func innerLayers() {
    Layers.nothingPublic.expectHolds(
      in: Layers.folders.flatMap { tree.files(under: $0.folder) })
  }

  // MARK: - The rules detect violations

  @Test(
    "The table's rule detects a foreign import.",
    arguments: [
      ("Sources/Larder/a.swift", "import ArgumentParser"),
      ("Sources/DirectCodingGenerator/a.swift", "package import Larder"),
      ("Sources/LarderFeeds/a.swift", "internal import CLarder"),
      ("Sources/CLarder/a.swift", "@testable import struct Larder.Entry"),
      ("Sources/Unheard/a.swift", "public import Larder"),
    ])
  func foreignImports(path: String, line: String) {
    #expect(Layers.allowedImports.lines(brokenBy: "import Foundation\n" + line, at: path) == [2])
  }

  @Test("The order's rule detects an import of a later target.")
  func importsFromBelow() {
    let manifest = SourceFile(
      path: "Package.swift",
      text: "targets: [\n.target(name: \"A\"),\n.executableTarget(\n  name: \"B\")]")
    let order = Layers.order(of: Layers.targets(in: manifest))
    #expect(Layers.targets(in: manifest) == ["A", "B"])
    #expect(order.lines(brokenBy: "import A", at: "Sources/B/b.swift") == [])
    #expect(order.lines(brokenBy: "import B", at: "Sources/A/a.swift") == [1])
  }

  @Test("The rule for folders detects a type that is declared elsewhere.")
  func folderViolations() {
    let store = SourceFile(
      path: "Sources/Larder/Store.swift",
      text: "public final class Store {\n  enum Part {}\n}\nprivate struct Own {}\nstruct Entry {}")
    let path = "Sources/Larder/Engine/a.swift"
    let engine = SourceFile(path: path, text: "struct Row {\n  struct Entry {}\n}")
    let rule = Layers.uses(ofTypesIn: [store], insteadOf: [engine])
    let uses = "let a = Store.self\n// Store\nlet b = StoreFiles()"
    #expect(rule.lines(brokenBy: uses, at: path) == [1])
    #expect(rule.lines(brokenBy: "Own()\nPart()\nEntry()", at: path) == [])
  }

  @Test("The rule for the C code detects an import outside of the engine.")
  func shimViolations() {
    let line = "import CLarder"
    let rule = Layers.shimImport
    #expect(rule.lines(brokenBy: line, at: "Sources/Larder/Engine/LevelDB/a.swift") == [])
    let opponent = "Sources/LarderInspection/Bench/LevelDBSide.swift"
    #expect(rule.lines(brokenBy: line, at: opponent) == [])
    #expect(rule.lines(brokenBy: line, at: "Sources/Larder/Engine/InMemory/a.swift") == [1])
    #expect(rule.lines(brokenBy: line, at: "Sources/LarderInspection/a.swift") == [1])
  }

  @Test("The headers' rule detects a LevelDB header.")
  func headerViolations() {
    let line = "#include <leveldb/db.h>"
    let rule = Layers.levelDBHeaders
    #expect(rule.lines(brokenBy: line, at: "Sources/CLarder/Database.cc") == [])
    #expect(rule.lines(brokenBy: line, at: "Tests/CSimulatedDisk/Env.cc") == [])
    #expect(rule.lines(brokenBy: line, at: "Tests/CTests/a.cc") == [1])
  }

  @Test("The rule for inner layers detects a public declaration.")
  func publicDeclarations() {
    let text = "package func f() {}\n// public\npublic import A\nopen class C {}\nopen(1)\n"
    #expect(Layers.nothingPublic.lines(brokenBy: text, at: "a.swift") == [3, 4])
  }
}

enum Layers {
  /// The modules of this package and of others that each target may import.
  ///
  /// Every target may import Foundation and the other system modules.
  static let table: [String: Set<String>] = [
    "CLarder": [],
    "Larder": ["CLarder", "CoreMetrics", "Crypto", "Logging", "Tracing"],
    "LarderHTTP": ["Larder", "HTTPTypes", "HTTPTypesFoundation"],
    "LarderFeeds": ["Larder", "LarderHTTP", "HTTPTypes", "HTTPTypesFoundation"],
    "LarderObservation": ["Larder"],
    "LarderShared": ["Larder", "NIOCore", "NIOPosix", "NIOSSL", "NIOTLS"],
    "LarderInspection": ["Larder", "CLarder"],
    "LarderTesting": ["Larder", "LarderFeeds", "LarderShared", "HTTPTypes"],
    "kvinspect": [
      "LarderInspection", "ArgumentParser", "NIOCore", "NIOHTTP1", "NIOPosix",
    ],
    "feeds": ["Larder", "LarderFeeds", "HTTPTypes", "ArgumentParser"],
    "DirectCodingGenerator": [],
    "generate-direct-coding": ["DirectCodingGenerator"],
  ]

  static let executables: Set = ["kvinspect", "feeds", "generate-direct-coding"]

  private static let systemModules: Set = [
    "Android", "Darwin", "Dispatch", "Foundation", "FoundationEssentials", "FoundationNetworking",
    "Glibc", "Musl", "Observation", "Synchronization", "System",
  ]

  static let allowedImports = Rule { file in
    let allowed = table[file.target ?? "", default: []].union(systemModules)
    return imports(in: file).filter { !allowed.contains($0.module) }.map {
      Finding(file, line: $0.line, "\(file.target ?? file.path) must not import \($0.module)")
    }
  }

  static func order(of targets: [String]) -> Rule {
    Rule { file in
      guard let place = targets.firstIndex(of: file.target ?? "") else {
        return [Finding(file, line: 0, "the manifest declares no target for this folder")]
      }
      return imports(in: file).filter { targets[place...].contains($0.module) }.map {
        Finding(file, line: $0.line, "\($0.module) is not declared above \(targets[place])")
      }
    }
  }

  /// The folders of `Larder` that know neither caches nor entries, with those that they may know.
  static let folders: [(folder: String, known: [String])] = [
    ("Sources/Larder/Bytes", []), ("Sources/Larder/Locks", []),
    ("Sources/Larder/Coding", ["Sources/Larder/Bytes", "Sources/Larder/Locks"]),
    ("Sources/Larder/Engine", ["Sources/Larder/Bytes", "Sources/Larder/Locks"]),
  ]

  /// Types at the top of a file in another folder, which a folder must not name.
  ///
  /// Errors are the exception: the library has one type for them. A name that the folder gives to a
  /// type of its own, such as `Entry` in `SortedEntries`, is not looked for.
  static func uses(ofTypesIn others: [SourceFile], insteadOf folder: [SourceFile]) -> Rule {
    let own = folder.flatMap(\.code).compactMap { declaredType(in: $0.drop { $0 == " " })?.name }
    let types = Set(
      others.flatMap(\.code).compactMap(declaredType(in:)).filter { !$0.isPrivate }.map(\.name)
    ).subtracting(own)
      .subtracting(["StoreError"])
    return Rule { file in
      file.code.enumerated().flatMap { line, code in
        code.split { !($0.isLetter || $0.isNumber || $0 == "_") }.map(String.init)
          .filter(types.contains)
          .map { Finding(file, line: line, "this folder must not know \($0)") }
      }
    }
  }

  /// The type that a line declares at the top of its file.
  private static func declaredType(in line: Substring) -> (name: String, isPrivate: Bool)? {
    let words = line.split(separator: " ")
    let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "actor", "typealias"]
    guard line.first?.isLetter == true, let place = words.firstIndex(where: kinds.contains),
      place + 1 < words.count
    else { return nil }
    let name = words[place + 1].prefix { $0.isLetter || $0.isNumber || $0 == "_" }
    return (String(name), words[..<place].contains { $0.hasSuffix("private") })
  }

  /// Only the engine, and the benchmarks' direct use of LevelDB, may import the C code.
  static let shimImport = Rule { file in
    guard !file.isUnder("Sources/Larder/Engine") || file.isUnder("Sources/Larder/Engine/InMemory"),
      file.path != "Sources/LarderInspection/Bench/LevelDBSide.swift"
    else { return [] }
    return imports(in: file).filter { $0.module == "CLarder" }.map {
      Finding(file, line: $0.line, "only the engine and its benchmark opponent import the C code")
    }
  }

  /// The simulated disk implements LevelDB's interface, so it includes LevelDB's headers, too.
  static let levelDBHeaders = Rule { file in
    let folders = ["Sources/CLarder", "Tests/CSimulatedDisk"]
    guard !file.isSwift, !folders.contains(where: file.isUnder) else { return [] }
    return file.lines.enumerated().filter { $0.element.contains("leveldb/") }.map {
      Finding(file, line: $0.offset, "only the shim and CSimulatedDisk include LevelDB's headers")
    }
  }

  static let nothingPublic = Rule.bans(
    ["public", "open class", "open func", "open var", "open subscript", "open override"],
    because: "users see stores and caches; inner layers are 'package'")

  /// The names of the manifest's targets, in its order.
  static func targets(in manifest: SourceFile) -> [String] {
    let list = manifest.text.split(separator: "targets: [\n").last ?? ""
    return list.split(separator: "arget(").dropFirst().compactMap { declaration in
      let quoted = declaration.split(separator: "\"", maxSplits: 2)
      return quoted.count > 1 && quoted[0].contains("name:") ? String(quoted[1]) : nil
    }
  }

  private static func imports(in file: SourceFile) -> [(line: Int, module: String)] {
    guard file.isSwift else { return [] }
    let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "func", "var", "typealias"]
    return file.code.enumerated().compactMap { line, code in
      let words = code.split(separator: " ")
      guard let place = words.firstIndex(of: "import") else { return nil }
      guard let name = words[(place + 1)...].first(where: { !kinds.contains($0) }) else {
        return nil
      }
      return (line, String(name.prefix { $0 != "." }))
    }
  }
}
