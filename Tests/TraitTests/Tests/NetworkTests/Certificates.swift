import Foundation
import LarderTestSupport

/// An authority of a test's own, and a certificate for the name `localhost`.
final class Certificates {
  /// The path of the program that makes them; nil if it is not installed.
  static let program: String? = ["/usr/bin/openssl", "/opt/homebrew/bin/openssl"].first {
    FileManager.default.isExecutableFile(atPath: $0)
  }

  struct NotMade: Error { let output: String }

  /// The path of the certificate, which is its own authority.
  let certificate: String
  /// The path of its private key.
  let key: String
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    (key, certificate) = (directory.path("key.pem"), directory.path("certificate.pem"))
    // A certificate that signs itself is an authority, too.
    try Self.run(
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
      "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key,
      "-out", certificate)
  }

  /// The options with which a Redis server uses the certificate, on a port.
  ///
  /// With `asking` it asks each client for a certificate, too.
  func serverOptions(port: Int, asking: Bool = false) -> [String] {
    [
      "--tls-port", "\(port)", "--tls-cert-file", certificate, "--tls-key-file", key,
      "--tls-ca-cert-file", certificate, "--tls-auth-clients", asking ? "yes" : "no",
      "--tls-replication", "yes",
    ]
  }

  private static func run(_ arguments: String...) throws {
    let process = Process()
    process.executableURL = URL(filePath: program ?? "")
    process.arguments = arguments
    let output = Pipe()
    process.standardError = output
    try process.run()
    let text = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw NotMade(output: String(decoding: text, as: UTF8.self))
    }
  }
}
