// swift-tools-version: 6.2
import PackageDescription

// The link of LarderShared to a server over a network, which the package does not build yet: no
// product needs it. The modules are symbolic links into the repository. What else LarderShared has
// needs Larder, and is left out.
let package = Package(
  name: "larder-shared-tests",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
  ],
  targets: [
    .target(
      name: "LarderShared",
      dependencies: [
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOTLS", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ],
      exclude: ["Keys", "Requests", "Tier"]),
    .target(name: "CTestSupport"),
    .target(name: "LarderTestSupport", dependencies: ["CTestSupport"]),
    .testTarget(
      name: "SharedLinkTests",
      dependencies: [
        "LarderShared", "LarderTestSupport",
        .product(name: "NIOPosix", package: "swift-nio"),
      ]),
  ],
  swiftLanguageModes: [.v6]
)

for target in package.targets where target.name != "CTestSupport" {
  target.swiftSettings = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .define("Shared"),
    .treatAllWarnings(as: .error),
  ]
}
