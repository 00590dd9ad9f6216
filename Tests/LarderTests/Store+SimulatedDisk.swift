import SimulatedDisk

@testable import Larder

extension Store {
  /// Opens the store of a simulated disk.
  convenience init(on disk: SimulatedDisk, options: Options) throws {
    var engineOptions = options.engineOptions
    engineOptions.files = SimulatedFiles(disk)
    let engine = try LevelDBEngine(at: "/store", options: engineOptions)
    try self.init(engine: engine, options: options, origin: .disk)
  }
}
