// swift-tools-version: 6.2
import PackageDescription

// The layers are symbolic links into the repository's Sources. As targets of this package, they
// give it access to their `package` declarations, so that nothing must be public for it.
let package = Package(
  name: "larder-benchmarks",
  platforms: [.macOS(.v15)],
  traits: [
    .trait(name: "Shared", description: "Adds the suite shared, which needs SwiftNIO and hiredis.")
  ],
  dependencies: [
    .package(url: "https://github.com/groue/GRDB.swift", exact: "7.10.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
  ],
  targets: [
    .target(
      name: "CLarder",
      linkerSettings: [.linkedLibrary("leveldb"), .linkedLibrary("snappy")]),
    .target(name: "Larder", dependencies: ["CLarder"]),

    .target(
      name: "LarderShared",
      dependencies: [
        "Larder",
        .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["Shared"])),
        .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["Shared"])),
        .product(name: "NIOTLS", package: "swift-nio", condition: .when(traits: ["Shared"])),
        .product(name: "NIOSSL", package: "swift-nio-ssl", condition: .when(traits: ["Shared"])),
      ]),

    .target(name: "RawLevelDB", linkerSettings: [.linkedLibrary("leveldb")]),
    .target(
      name: "Peers", dependencies: ["RawLevelDB"],
      linkerSettings: [.linkedLibrary("lmdb"), .linkedLibrary("rocksdb")]),
    .target(name: "RawRedis", linkerSettings: [.linkedLibrary("hiredis")]),
    // Its folder has a link to the workloads shared with `kvinspect bench`, which makes them part
    // of this module: a measured loop calls no other module but the measured one.
    .executableTarget(
      name: "larder-bench",
      dependencies: [
        "Larder", "RawLevelDB", "Peers",
        .product(name: "GRDB", package: "GRDB.swift"),
        .target(name: "LarderShared", condition: .when(traits: ["Shared"])),
        .target(name: "RawRedis", condition: .when(traits: ["Shared"])),
      ]),
    // Its folder `Values` links to the values of the coding suite.
    .executableTarget(
      name: "larder-counts", dependencies: ["Larder"]),
  ],
  swiftLanguageModes: [.v6],
  cxxLanguageStandard: .cxx17
)

// The same compiler settings as in the repository's manifest.
let cxxTargets = ["CLarder", "RawLevelDB", "RawRedis", "Peers"]
for target in package.targets where !cxxTargets.contains(target.name) {
  target.swiftSettings = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
  ]
}
