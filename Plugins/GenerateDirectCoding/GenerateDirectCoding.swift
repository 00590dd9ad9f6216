import Foundation
import PackagePlugin

/// `swift package generate-direct-coding`: runs the tool of that name for the files of each target.
@main
struct GenerateDirectCoding: CommandPlugin {
  func performCommand(context: PluginContext, arguments: [String]) throws {
    let tool = try context.tool(named: "generate-direct-coding").url
    let root = context.package.directoryURL.path(percentEncoded: false)
    let options = arguments.filter { $0.hasPrefix("-") }
    var files = arguments.filter { !$0.hasPrefix("-") }.map { URL(filePath: $0) }
    let isForAll = files.isEmpty
    for target in context.package.targets.compactMap(\.sourceModule) {
      let sources = target.sourceFiles(withSuffix: "swift").map(\.url)
      let own = files.filter { file in sources.contains { $0.path == file.path } }
      files.removeAll { file in own.contains(file) }
      guard isForAll || !own.isEmpty else { continue }
      try run(tool, options, own, beside: sources, in: root)
    }
    // Files of no target, and no file at all.
    if !files.isEmpty || options.contains("--help") {
      try run(tool, options, files, beside: [], in: root)
    }
  }

  private func run(
    _ tool: URL, _ options: [String], _ files: [URL], beside others: [URL], in root: String
  ) throws {
    func shortened(_ urls: [URL]) -> [String] {
      urls.map { url in
        let path = url.path(percentEncoded: false)
        return path.hasPrefix(root) ? String(path.dropFirst(root.count)) : path
      }
    }
    let process = Process()
    process.executableURL = tool
    process.currentDirectoryURL = URL(filePath: root)
    process.arguments = options + shortened(files) + ["--beside"] + shortened(others)
    try process.run()
    process.waitUntilExit()
    if process.terminationStatus != 0 { Diagnostics.error("generate-direct-coding has failed") }
  }
}
