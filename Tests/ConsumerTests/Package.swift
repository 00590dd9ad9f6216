// swift-tools-version: 6.2
import PackageDescription

// A user's package. Scripts/consumer-check copies it beside a tagged clone of the repository and
// puts the code of the README and the recipes into its programs, so this manifest resolves only
// there.
let clone = Context.environment["LARDER_CLONE"] ?? "set-by-Scripts-consumer-check"

let products: [Target.Dependency] = [
  .product(name: "Larder", package: "larder"),
  .product(name: "LarderFeeds", package: "larder"),
  .product(name: "LarderTesting", package: "larder"),
]

let package = Package(
  name: "consumer",
  platforms: [.macOS(.v15)],
  dependencies: [.package(url: clone, from: "1.0.0")],
  targets: [
    .executableTarget(name: "ReadmeProgram", dependencies: products),
    .executableTarget(name: "RecipesProgram", dependencies: products),
    .executableTarget(name: "ErrorProgram", dependencies: products),
    .executableTarget(name: "GeneratedProgram", dependencies: products),
    .executableTarget(
      name: "MainActorProgram", dependencies: products,
      swiftSettings: [.defaultIsolation(MainActor.self)]),
  ],
  swiftLanguageModes: [.v6]
)
