// swift-tools-version: 6.2
import PackageDescription

// Programs to copy from. `make examples` runs each of them and compares what it prints with
// Expected/NAME.txt.

let larder: [Target.Dependency] = [
  "ExampleSupport",
  .product(name: "Larder", package: "larder"),
  // A clock that the examples advance instead of waiting. A program leaves the system's clock.
  .product(name: "LarderTesting", package: "larder"),
]

let package = Package(
  name: "examples",
  platforms: [.macOS(.v15)],
  dependencies: [
    // A program depends on the URL of the repository instead.
    .package(name: "larder", path: ".."),
    .package(url: "https://github.com/swhitty/FlyingFox", from: "0.27.1"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: [
    .target(name: "ExampleSupport"),
    .executableTarget(
      name: "FeedScreen",
      dependencies: larder + [.product(name: "LarderObservation", package: "larder")]),
    .executableTarget(name: "GettingStarted", dependencies: larder),
    .executableTarget(
      name: "GracefulShutdown",
      dependencies: [
        "ExampleSupport", .product(name: "Larder", package: "larder"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ]),
    .executableTarget(name: "IdempotencyKeys", dependencies: larder),
    .executableTarget(name: "ImageCache", dependencies: larder),
    .executableTarget(name: "OfflineFeed", dependencies: larder),
    .executableTarget(name: "RateLimit", dependencies: larder),
    .executableTarget(name: "ReadThrough", dependencies: larder),
    .executableTarget(
      name: "ResponseCache",
      dependencies: larder + [
        .product(name: "LarderHTTP", package: "larder"),
        .product(name: "FlyingFox", package: "FlyingFox"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
      ]),
    .executableTarget(name: "SessionStore", dependencies: larder),
    .executableTarget(name: "Settings", dependencies: larder),
  ],
  swiftLanguageModes: [.v6]
)

for target in package.targets {
  target.swiftSettings = [.treatAllWarnings(as: .error)]
}
