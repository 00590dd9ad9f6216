import ArgumentParser
import Foundation
import LarderInspection

struct Serve: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show the store on a page in a browser, until Ctrl-C.",
    discussion: """
      Prints the address of the page, which only programs on this machine can reach. The address \
      has a secret: who knows it can read the store. The page shows a snapshot, and takes a new \
      one when asked; the store may be open, and nothing changes in its directory.
      """)

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Option(help: "The port on 127.0.0.1; 0 for any that is free.")
  var port: UInt16 = 0

  @Option(help: "The directory of a second store, to show what differs.", completion: .directory)
  var compare: String?

  @OptionGroup var sealed: KeyOption

  @Flag(help: "Open the page in the browser.")
  var open = false

  @Option(help: "How keys are written and read: auto, utf8, hex or base64.")
  var keys: KeyForm = .auto

  @Flag(help: "Show no values, and only lengths and checksums of keys.")
  var redact = false

  @Flag(help: "Write only the address.")
  var quiet = false

  @Option(
    parsing: .unconditional,
    help: "Evaluate lifetimes at this time: 2026-01-31T12:00:00Z, 2026-01-31, +8d, -90s.")
  var now: String?

  func run() throws {
    var style = Style()
    (style.keys, style.isRedacted) = (keys, redact)
    try runCommand(quiet: quiet) { [style] output throws(InspectionError) in
      #if Page
        let page = try InspectionPage(
          of: store, comparedWith: compare, openedWith: try sealed.key,
          token: InspectionPage.newToken(), style: style
        ) { [now] () throws(InspectionError) in try Moment.parse(now) }
        return try serve(page, to: &output)
      #else
        throw InspectionError(
          usage: "this kvinspect was built without the page; `make install` builds it with "
            + "the page, and so does `swift build --traits Page`")
      #endif
    }
  }

  #if Page
    private func serve(
      _ page: InspectionPage, to output: inout StandardOutput
    ) throws(InspectionError) -> Outcome {
      do {
        try PageServer(page).run(on: Int(port)) { port in
          let address = "http://127.0.0.1:\(port)\(page.root)"
          output.write(address + "\n")
          output.flush()
          if !quiet { printMessage("serving \(page.directory) until Ctrl-C") }
          if open { try openBrowser(at: address) }
        }
        return .fine
      } catch {
        throw InspectionError(cannotServeOn: Int(port), because: "\(error)")
      }
    }

    private func openBrowser(at address: String) throws {
      let process = Process()
      process.executableURL = URL(filePath: "/usr/bin/env")
      #if os(macOS)
        process.arguments = ["open", address]
      #else
        process.arguments = ["xdg-open", address]
      #endif
      process.standardOutput = FileHandle.nullDevice
      try process.run()
    }
  #endif
}
