import LarderEngine

extension Snapshot {
  /// Ends the copies of the logs before the first thing in them that cannot be read.
  ///
  /// So the rest of the store can be opened, as it was at an earlier moment. The store's own files
  /// stay as they are.
  ///
  /// - Returns: What was found, in words: an end that was torn off by a power loss, or is still
  ///   being written, and damage.
  func cutLogs() throws(InspectionError) -> (torn: String?, damage: String?) {
    let survey = try LogSurvey(
      of: manifest, in: source, names: try FileAccess.names(in: directory.path)
    ) { name throws(InspectionError) in
      try FileAccess.read("\(directory.path)/\(name)", limit: .max) ?? []
    }
    switch survey.finding {
    case .whole: return (nil, nil)
    case .torn(let index, let place):
      try cut(survey.logs, from: index, at: place)
      let log = survey.logs[index]
      let later = survey.logs[(index + 1)...].contains { $0.firstSequence != nil }
      let what = "\(source)/\(log.name) is torn at byte \(place)"
      guard place == 0 && log.firstSequence != nil || later else { return (what, nil) }
      return (nil, what + ", and what later logs hold cannot be used")
    case .damaged(let index, let place, let message):
      try cut(survey.logs, from: index, at: place)
      return (nil, message + "; what was written from there on is not shown")
    }
  }

  private func cut(
    _ logs: [LogSurvey.Log], from index: Int, at place: Int
  ) throws(InspectionError) {
    for (number, log) in logs.enumerated() where number >= index {
      let kept = number == index ? min(place, log.byteCount) : 0
      try FileAccess.truncate("\(directory.path)/\(log.name)", to: kept)
    }
  }
}
