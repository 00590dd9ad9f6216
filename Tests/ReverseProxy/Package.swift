// swift-tools-version: 6.2
import PackageDescription

// A cache of responses between a Hummingbird server and another server. `Scripts/proof http` puts
// it in front of the server of the public tests of HTTP caches. It is a package of its own because
// no other test needs Hummingbird.
let package = Package(
  name: "reverse-proxy",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "larder", path: "../.."),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
  ],
  targets: [
    .executableTarget(
      name: "ReverseProxy",
      dependencies: [
        .product(name: "Larder", package: "larder"),
        .product(name: "LarderHTTP", package: "larder"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "NIOFoundationCompat", package: "swift-nio"),
      ],
      swiftSettings: [.treatAllWarnings(as: .error)])
  ],
  swiftLanguageModes: [.v6]
)
