// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "larder",
  platforms: [.macOS(.v15), .iOS(.v18)],
  products: [
    .library(name: "Larder", targets: ["Larder"]),
    .library(name: "LarderTesting", targets: ["LarderTesting"]),
  ],
  targets: [
    // The layers, bottom to top. A target may import only what stands above it in this list.
    .target(name: "CLarderLevelDB", linkerSettings: [.linkedLibrary("leveldb")]),
    .target(name: "LarderEngine", dependencies: ["CLarderLevelDB"]),
    .target(name: "LarderCoding"),
    .target(name: "Larder", dependencies: ["LarderEngine", "LarderCoding"]),
    .target(name: "LarderTesting", dependencies: ["Larder"]),

    // What tests share, and the process that they kill. Tests mirror the layers.
    .target(name: "LarderTestSupport", path: "Tests/Support"),
    .executableTarget(
      name: "CrashWorker", dependencies: ["LarderEngine", "LarderTestSupport"],
      path: "Tests/CrashWorker"),
    .testTarget(
      name: "LarderEngineTests",
      dependencies: ["LarderEngine", "LarderTestSupport", "CrashWorker"]),
    .testTarget(
      name: "LarderTests",
      dependencies: ["Larder", "LarderEngine", "LarderTesting", "LarderTestSupport"],
      exclude: ["Fixtures"]),

    // The repository's own rules about its sources.
    .testTarget(name: "TidyTests"),
  ],
  swiftLanguageModes: [.v6],
  cxxLanguageStandard: .cxx17
)

// One set of compiler settings, applied to every Swift target so that none drifts.
for target in package.targets where target.name != "CLarderLevelDB" {
  target.swiftSettings = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
  ]
}
