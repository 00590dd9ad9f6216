// swift-tools-version: 6.2
import PackageDescription

// A user's package that turns the trait `Metrics` on. It is a package of its own because the trait
// holds for a whole build: the other tests are those of a build without it.
let package = Package(
  name: "metrics-tests",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "larder", path: "../..", traits: ["Metrics"]),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
  ],
  targets: [
    .testTarget(
      name: "MetricsTests",
      dependencies: [
        .product(name: "Larder", package: "larder"),
        .product(name: "LarderTesting", package: "larder"),
        .product(name: "CoreMetrics", package: "swift-metrics"),
        .product(name: "MetricsTestKit", package: "swift-metrics"),
      ],
      path: "Tests")
  ],
  swiftLanguageModes: [.v6]
)
