import ArgumentParser

@main struct Feeds: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "feeds",
    abstract: "Load a feed from a server, through a cache.",
    discussion: """
      What was loaded goes to standard output, errors and warnings in words to standard error.
      Ctrl-C cancels a load: its request stops, and nothing is saved.

      Exit codes:
        0   it was loaded; a warning says if it could not be saved, or the store not be opened
        2   the server could not be reached, and the cache had nothing fresh enough
        3   the server's answer is not valid, and the cache had nothing fresh enough
        5   the image could not be written
        64  the command line is wrong
        130 the load was cancelled
      """,
    subcommands: [
      Genres.self, Characters.self, EssentialFeed.self, Search.self, Images.self, Image.self,
    ])
}
