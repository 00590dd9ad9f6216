import LarderTestSupport
import SimulatedDisk
import Synchronization
import Testing

@testable import Larder

/// LevelDB deletes its files in the background, while others list them and ask for their sizes.
@Suite struct StoreFilesTests {
  enum Kind: CaseIterable { case system, simulated, inMemory }

  /// Creates and deletes files of new names, as LevelDB does, while another thread asks for sizes.
  private func expectSizes(in directory: String, of files: some StoreFiles) {
    let bytes = [UInt8](repeating: 7, count: 1000)
    let newest = Atomic(-1)
    onThreads(2) { thread in
      #expect(throws: Never.self) {
        for number in 0..<20_000 {
          if thread == 0 {
            let path = "\(directory)/\(number)"
            try files.create(path, with: bytes)
            newest.store(number, ordering: .releasing)
            try files.remove(path)
          } else {
            let path = "\(directory)/\(newest.load(ordering: .acquiring))"
            let count = try files.byteCount(of: path)
            #expect(count == nil || count == 0 || count == bytes.count)
          }
        }
      }
    }
  }

  @Test(
    "Asking for the size of a file that another thread deletes throws no error.",
    arguments: Kind.allCases)
  func sizeOfDeletedFile(kind: Kind) throws {
    switch kind {
    case .system:
      let directory = try TemporaryDirectory()
      expectSizes(in: directory.path, of: SystemFiles())
    case .simulated:
      let files = SimulatedFiles(SimulatedDisk())
      try files.makeDirectory("/store")
      expectSizes(in: "/store", of: files)
    case .inMemory: expectSizes(in: MemoryFiles.directory, of: MemoryFiles())
    }
  }
}
