// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "larder",
  platforms: [.macOS(.v15)],
  products: [
    .library(name: "Larder", targets: ["Larder"]),
    .library(name: "LarderFeeds", targets: ["LarderFeeds"]),
    .library(name: "LarderHTTP", targets: ["LarderHTTP"]),
    .library(name: "LarderObservation", targets: ["LarderObservation"]),
    .library(name: "LarderShared", targets: ["LarderShared"]),
    .library(name: "LarderTesting", targets: ["LarderTesting"]),
    .executable(name: "kvinspect", targets: ["kvinspect"]),
    .executable(name: "feeds", targets: ["feeds"]),
    .plugin(name: "GenerateDirectCoding", targets: ["GenerateDirectCoding"]),
  ],
  traits: [
    .trait(
      name: "Encryption", description: "Seals values on disk with a key, with swift-crypto."),
    .trait(name: "Logging", description: "Logs what a store's operator should know to swift-log."),
    .trait(name: "Metrics", description: "Sends the counts of a store to swift-metrics, too."),
    .trait(name: "Page", description: "Lets kvinspect serve a page, with SwiftNIO."),
    .trait(
      name: "Shared",
      description: "Lets LarderShared connect to a Redis or Valkey server, with SwiftNIO."),
    .trait(
      name: "Tracing", description: "Makes a span of swift-distributed-tracing for each load."),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    // Used only with the traits of their names. Without them, users never resolve these.
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    // Used only by the tests' server. No product depends on it, so users never resolve it.
    .package(url: "https://github.com/swhitty/FlyingFox", from: "0.27.1"),
  ],
  targets: [
    // The layers, bottom to top. A target may import only the targets above it in this list.
    .target(
      name: "CLarder",
      linkerSettings: [.linkedLibrary("leveldb"), .linkedLibrary("snappy")]),
    .target(
      name: "Larder",
      dependencies: [
        "CLarder",
        .product(
          name: "Crypto", package: "swift-crypto", condition: .when(traits: ["Encryption"])),
        .product(name: "Logging", package: "swift-log", condition: .when(traits: ["Logging"])),
        .product(
          name: "CoreMetrics", package: "swift-metrics", condition: .when(traits: ["Metrics"])),
        .product(
          name: "Tracing", package: "swift-distributed-tracing",
          condition: .when(traits: ["Tracing"])),
      ]),
    .target(
      name: "LarderHTTP",
      dependencies: [
        "Larder", .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "HTTPTypesFoundation", package: "swift-http-types"),
      ]),
    .target(
      name: "LarderFeeds",
      dependencies: [
        "Larder", "LarderHTTP", .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "HTTPTypesFoundation", package: "swift-http-types"),
      ]),
    .target(name: "LarderObservation", dependencies: ["Larder"]),
    .target(
      name: "LarderShared",
      dependencies: [
        "Larder",
        .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["Shared"])),
        .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["Shared"])),
        .product(name: "NIOTLS", package: "swift-nio", condition: .when(traits: ["Shared"])),
        .product(name: "NIOSSL", package: "swift-nio-ssl", condition: .when(traits: ["Shared"])),
      ]),
    .target(
      name: "LarderTesting",
      dependencies: [
        "Larder", "LarderFeeds", "LarderShared",
        .product(name: "HTTPTypes", package: "swift-http-types"),
      ]),
    .target(
      name: "LarderInspection",
      dependencies: ["Larder", "CLarder"]),
    .executableTarget(
      name: "kvinspect",
      dependencies: [
        "LarderInspection",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["Page"])),
        .product(name: "NIOHTTP1", package: "swift-nio", condition: .when(traits: ["Page"])),
        .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["Page"])),
      ]),
    .executableTarget(
      name: "feeds",
      dependencies: [
        "Larder", "LarderFeeds", .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
      ]),

    // `swift package generate-direct-coding`, its tool, and what the tool consists of.
    .target(name: "DirectCodingGenerator"),
    .executableTarget(name: "generate-direct-coding", dependencies: ["DirectCodingGenerator"]),
    .plugin(
      name: "GenerateDirectCoding",
      capability: .command(
        intent: .custom(
          verb: "generate-direct-coding",
          description: "Writes the functions of DirectCoding and DirectEnum for a file"),
        permissions: [
          .writeToPackageDirectory(
            reason: "It writes FILE+DirectCoding.swift beside FILE.swift, or into FILE.swift.")
        ]),
      dependencies: ["generate-direct-coding"]),

    // A real HTTP server for tests and demos.
    .target(
      name: "FeedServer",
      dependencies: ["LarderTestSupport", .product(name: "FlyingFox", package: "FlyingFox")],
      path: "Tests/FeedServer"),
    .executableTarget(
      name: "feed-server",
      dependencies: [
        "FeedServer", .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "Tests/feed-server"),

    // Helpers of the tests, and the process that they kill. Test targets mirror the layers.
    .target(name: "CTestSupport", path: "Tests/CSupport"),
    .target(
      name: "LarderTestSupport", dependencies: ["CTestSupport"], path: "Tests/Support"),
    .target(
      name: "LarderEngineSupport", dependencies: ["Larder"], path: "Tests/EngineSupport"),
    // The check that each row of the acceptance tables has tests.
    .target(name: "AcceptanceRows", path: "Tests/AcceptanceRows"),
    // A disk in memory with faults and power losses, for LevelDB and for the store.
    .target(
      name: "CSimulatedDisk", path: "Tests/CSimulatedDisk",
      linkerSettings: [.linkedLibrary("leveldb")]),
    .target(
      name: "SimulatedDisk", dependencies: ["CSimulatedDisk", "Larder", "LarderTestSupport"],
      path: "Tests/SimulatedDisk"),
    .executableTarget(
      name: "CrashWorker",
      dependencies: [
        "Larder", "LarderTesting", "LarderTestSupport",
      ],
      path: "Tests/CrashWorker"),
    // Types to encode: one for each way in which a type can encode itself.
    .target(name: "Specimens", dependencies: ["LarderTestSupport"], path: "Tests/Specimens"),
    // Digests of the payloads of random values, for `Scripts/payloads`. Its folder has links to the
    // specimens, and to the models of LarderTests.
    .executableTarget(
      name: "payload-digest",
      dependencies: ["Larder", "LarderTestSupport"],
      path: "Tests/PayloadDigest"),
    // Counts allocations, in a separate process.
    .target(name: "LarderAllocationCount", path: "Tests/AllocationCount"),
    .executableTarget(
      name: "AllocationWorker",
      dependencies: [
        "Larder", "LarderAllocationCount", "LarderTestSupport",
        "Specimens",
      ],
      path: "Tests/AllocationWorker"),
    .testTarget(
      name: "LarderEngineTests",
      dependencies: [
        "Larder", "LarderTestSupport", "LarderEngineSupport", "SimulatedDisk",
        "CSimulatedDisk", "CrashWorker", "AcceptanceRows",
      ]),
    .testTarget(
      name: "LarderCodingTests",
      dependencies: [
        "Larder", "LarderTestSupport", "Specimens", "AllocationWorker",
      ],
      exclude: ["Fixtures"]),
    .testTarget(
      name: "LarderTests",
      dependencies: [
        "Larder", "LarderObservation", "LarderTesting",
        "LarderTestSupport", "LarderEngineSupport", "AcceptanceRows", "SimulatedDisk",
        "CrashWorker", "AllocationWorker", "Specimens",
      ],
      exclude: ["Fixtures"]),
    .testTarget(
      name: "LarderInspectionTests",
      dependencies: [
        "LarderInspection", "Larder",
        "LarderTesting", "LarderTestSupport", "CrashWorker", "kvinspect",
      ],
      exclude: ["Snapshots"]),
    .testTarget(
      name: "LarderFeedsTests",
      dependencies: [
        .product(name: "HTTPTypes", package: "swift-http-types"),
        "LarderFeeds", "Larder", "LarderHTTP", "LarderTesting",
        "LarderTestSupport", "LarderEngineSupport", "AcceptanceRows", "SimulatedDisk",
        "FeedServer", "feeds",
      ]),
    .testTarget(
      name: "LarderSharedTests",
      dependencies: ["LarderShared", "Larder", "LarderTesting", "LarderTestSupport"]),
    .testTarget(
      name: "DirectCodingGeneratorTests",
      dependencies: [
        "DirectCodingGenerator", "generate-direct-coding", "Larder",
        "LarderTestSupport",
      ]),

    // The repository's own rules about its sources.
    .testTarget(name: "TidyTests"),
  ],
  swiftLanguageModes: [.v6],
  cxxLanguageStandard: .cxx17
)

// The same compiler settings for every Swift target.
let targetsInC: Set = ["CLarder", "CSimulatedDisk"]
for target in package.targets where target.type != .plugin && !targetsInC.contains(target.name) {
  target.swiftSettings = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
  ]
}
