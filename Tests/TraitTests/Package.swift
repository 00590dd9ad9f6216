// swift-tools-version: 6.2
import PackageDescription

// A user's package that turns the traits on. It is a package of its own because a trait holds for a
// whole build: the other tests are those of a build without traits.
let package = Package(
  name: "trait-tests",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(
      name: "larder", path: "../..",
      traits: ["Encryption", "Logging", "Metrics", "Page", "Shared", "Tracing"]),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
  ],
  targets: [
    .testTarget(
      name: "TraitTests",
      dependencies: [
        .product(name: "Larder", package: "larder"),
        .product(name: "LarderShared", package: "larder"),
        .product(name: "LarderTesting", package: "larder"),
        .product(name: "InMemoryLogging", package: "swift-log"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "CoreMetrics", package: "swift-metrics"),
        .product(name: "MetricsTestKit", package: "swift-metrics"),
        .product(name: "Tracing", package: "swift-distributed-tracing"),
        .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
      ],
      path: "Tests/TraitTests"),
    // The example of a shared cache, and the tests' own helpers, by symbolic links.
    .executableTarget(
      name: "SharedCache",
      dependencies: [
        .product(name: "Larder", package: "larder"),
        .product(name: "LarderShared", package: "larder"),
      ]),
    // A machine of its own, for the tests that kill one.
    .executableTarget(
      name: "SharedWorker",
      dependencies: [
        "LarderTestSupport",
        .product(name: "Larder", package: "larder"),
        .product(name: "LarderShared", package: "larder"),
      ]),
    .target(name: "CTestSupport"),
    .target(name: "LarderTestSupport", dependencies: ["CTestSupport"]),
    .testTarget(
      name: "NetworkTests",
      dependencies: [
        "LarderTestSupport",
        "SharedWorker",
        .product(name: "Larder", package: "larder"),
        .product(name: "LarderShared", package: "larder"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ]),
    // Replaces keys and seals entries, for the test that kills it.
    .executableTarget(
      name: "SealWorker",
      dependencies: [
        .product(name: "Larder", package: "larder"),
        .product(name: "Crypto", package: "swift-crypto"),
      ]),
    // The example of a sealed store.
    .executableTarget(
      name: "SealedStore",
      dependencies: [
        .product(name: "Larder", package: "larder"),
        .product(name: "Crypto", package: "swift-crypto"),
      ]),
    // What a key costs, for `make bench-sealed`.
    .executableTarget(
      name: "SealCosts",
      dependencies: [
        .product(name: "Larder", package: "larder"),
        .product(name: "Crypto", package: "swift-crypto"),
      ]),
    // A disk with faults and power losses, as in the root package.
    .target(name: "CSimulatedDisk", linkerSettings: [.linkedLibrary("leveldb")]),
    .target(
      name: "SimulatedDisk",
      dependencies: [
        "CSimulatedDisk", "LarderTestSupport", .product(name: "Larder", package: "larder"),
      ]),
    .testTarget(
      name: "EncryptionTests",
      dependencies: [
        "LarderTestSupport", "SealWorker", "SimulatedDisk",
        .product(name: "Larder", package: "larder"),
        .product(name: "LarderTesting", package: "larder"),
        .product(name: "Crypto", package: "swift-crypto"),
      ],
      exclude: ["Fixtures", "open_sealed.py"]),
    // Makes the stores that the tests of the page look at.
    .executableTarget(
      name: "page-store",
      dependencies: [
        .product(name: "Larder", package: "larder"),
        .product(name: "LarderTesting", package: "larder"),
      ]),
    .testTarget(
      name: "PageTests",
      dependencies: [
        "LarderTestSupport", "page-store",
        .product(name: "Larder", package: "larder"),
        .product(name: "LarderTesting", package: "larder"),
        .product(name: "kvinspect", package: "larder"),
      ]),
  ],
  swiftLanguageModes: [.v6],
  cxxLanguageStandard: .cxx17
)

for target in package.targets where ["LarderTestSupport", "SimulatedDisk"].contains(target.name) {
  target.swiftSettings = [
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .define("TRAIT_TESTS"),
  ]
}
