import DirectCodingGenerator
import Foundation

/// The tool behind the command plugin of the same name.
@main
struct GenerateDirectCoding {
  static func main() {
    let outcome = Command.run(Array(CommandLine.arguments.dropFirst()))
    FileHandle.standardOutput.write(Data(outcome.output.utf8))
    FileHandle.standardError.write(Data(outcome.complaints.utf8))
    exit(outcome.status)
  }
}
