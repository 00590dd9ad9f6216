// swift-tools-version: 6.2
import PackageDescription

// The layers are symbolic links into the repository's Sources. As targets of this package, they
// give it access to their `package` declarations, so that nothing must be public for it.
let package = Package(
  name: "larder-benchmarks",
  platforms: [.macOS(.v15)],
  dependencies: [.package(url: "https://github.com/groue/GRDB.swift", exact: "7.10.0")],
  targets: [
    .target(
      name: "CLarder",
      linkerSettings: [.linkedLibrary("leveldb"), .linkedLibrary("snappy")]),
    .target(name: "Larder", dependencies: ["CLarder"]),

    .target(name: "RawLevelDB", linkerSettings: [.linkedLibrary("leveldb")]),
    .target(
      name: "Peers", dependencies: ["RawLevelDB"],
      linkerSettings: [.linkedLibrary("lmdb"), .linkedLibrary("rocksdb")]),
    // Its folder has a link to the workloads shared with `kvinspect bench`, which makes them part
    // of this module: a measured loop calls no other module but the measured one.
    .executableTarget(
      name: "larder-bench",
      dependencies: [
        "Larder", "RawLevelDB", "Peers",
        .product(name: "GRDB", package: "GRDB.swift"),
      ]),
    // Its folder `Values` links to the values of the coding suite.
    .executableTarget(
      name: "larder-counts", dependencies: ["Larder"]),
  ],
  swiftLanguageModes: [.v6],
  cxxLanguageStandard: .cxx17
)

// The same compiler settings as in the repository's manifest.
let cxxTargets = ["CLarder", "RawLevelDB", "Peers"]
for target in package.targets where !cxxTargets.contains(target.name) {
  target.swiftSettings = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
  ]
}
