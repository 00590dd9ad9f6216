import CLarderLevelDB

/// Gives two files or directories each other's names, in one step; returns 0, or an errno.
func exchangeNames(_ path: String, _ other: String) -> Int32 { clarder_exchange(path, other) }
