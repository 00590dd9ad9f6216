import ArgumentParser

@main struct Feeds: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "feeds",
    abstract: "Load a feed from a server through a cache.",
    discussion: """
      The list goes to standard output, errors and warnings in words to standard error.

      Exit codes:
        0   the list was loaded; a warning tells if it could not be saved
        2   the server could not be reached, and the cache had nothing fresh enough
        3   the server's answer is not valid, and the cache had nothing fresh enough
        4   the store could not be opened
        64  the command line is wrong
      """,
    subcommands: [Genres.self, Characters.self])
}
