// swift-tools-version: 6.2
import PackageDescription

// A cache that three processes share on a Redis server. It is a package of its own because of the
// trait, which brings SwiftNIO. `swift run` needs `redis-server` on the PATH. `make traits` runs
// it, and compares what it prints with Expected.txt.
let package = Package(
  name: "shared-cache",
  platforms: [.macOS(.v15)],
  dependencies: [
    // A program depends on the URL of the repository instead.
    .package(name: "larder", path: "../..", traits: ["Shared"])
  ],
  targets: [
    .executableTarget(
      name: "SharedCache",
      dependencies: [
        .product(name: "Larder", package: "larder"),
        .product(name: "LarderShared", package: "larder"),
      ])
  ],
  swiftLanguageModes: [.v6]
)

for target in package.targets {
  target.swiftSettings = [.treatAllWarnings(as: .error)]
}
