import ArgumentParser

@main struct Feeds: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "feeds",
    abstract: "Load a feed from a server, through a cache.",
    discussion: """
      The loaded value is printed to standard output, errors and warnings to standard error.
      Ctrl-C cancels a load: its request stops, and nothing is saved.

      Exit codes:
        0   loaded; a warning reports a failure to open the store or to save the value
        2   the server could not be reached, and the cache had no fresh value
        3   the server's answer is not valid, and the cache had no fresh value
        4   the store could not be validated
        5   the image could not be written
        64  the command line is invalid
        130 the load was cancelled
      """,
    subcommands: [
      Genres.self, Characters.self, EssentialFeed.self, Search.self, Images.self, Image.self,
      Validate.self,
    ])
}
