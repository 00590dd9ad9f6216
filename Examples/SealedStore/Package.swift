// swift-tools-version: 6.2
import PackageDescription

// A store that is sealed with a key. It is a package of its own because of the trait, which brings
// swift-crypto. `make traits` runs it, and compares what it prints with Expected.txt.
let package = Package(
  name: "sealed-store",
  platforms: [.macOS(.v15)],
  dependencies: [
    // A program depends on the URL of the repository instead.
    .package(name: "larder", path: "../..", traits: ["Encryption"]),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
  ],
  targets: [
    .executableTarget(
      name: "SealedStore",
      dependencies: [
        .product(name: "Larder", package: "larder"),
        .product(name: "Crypto", package: "swift-crypto"),
      ])
  ],
  swiftLanguageModes: [.v6]
)

for target in package.targets {
  target.swiftSettings = [.treatAllWarnings(as: .error)]
}
