import Foundation

// Only the examples need this: each of them removes its directory and checks its own outcome.

/// Creates an empty directory for one run of an example.
///
/// - Returns: The directory. The example removes it at its end.
/// - Throws: An error of the file system.
public func temporaryDirectory() throws -> URL {
  let directory = FileManager.default.temporaryDirectory.appending(
    path: "larder-example-\(UUID())")
  try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
  return directory
}

/// Ends the program with exit code 1 if an outcome is not the expected one.
public func expect(_ isAsExpected: Bool, _ outcome: String, line: Int = #line) {
  guard !isAsExpected else { return }
  print("line \(line): expected: \(outcome)")
  exit(1)
}
