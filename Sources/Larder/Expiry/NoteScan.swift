/// A scan of all records for those that are not noted, in slices.
///
/// It is needed after a crash, after damage, in a store of a version that had no notes, and when
/// there are many notes of records that were overwritten. Records that are written during the scan
/// are noted by their write. In the end it removes the rows that are needed no more.
struct NoteScan {
  /// The number of records that a save visits, if it is the save that has written packs.
  static let stepsOfSave = 4096
  /// The number of rows that are removed by one write.
  private static let removedRows = 1024

  /// Which scan it is; see ``ExpiryNotes/scanNumber``.
  let number: Int
  private var space = KeySpace.records
  private var next = EngineRange(prefix: [KeySpace.records.rawValue])

  init(number: Int) { self.number = number }

  /// Visits at most `steps` records and rows.
  ///
  /// - Returns: Whether all were visited, so that the notes are complete.
  mutating func run(in context: StoreContext, steps: inout Int) throws(StoreError) -> Bool {
    while steps > 0 {
      switch space {
      case .records, .metadata, .unshared:
        guard try note(in: context, steps: &steps) else { return false }
        begin(.expiry)
      case .expiry:
        // Rows of the index that versions before the notes had.
        guard try removeRows(in: context, steps: &steps, if: { _ in true }) else { return false }
        // Before the old packs go.
        if context.notes.endOfOldPacks > 0 { try context.writeNotes() }
        begin(.notes)
      case .notes:
        let end = context.notes.endOfOldPacks
        let isDone = try removeRows(in: context, steps: &steps) { key in
          NotePack(key: key).map { $0.number < end } ?? true
        }
        guard isDone else { return false }
        context.notes.didScan(number)
        return true
      }
    }
    return false
  }

  private mutating func begin(_ space: KeySpace) {
    self.space = space
    next = EngineRange(prefix: [space.rawValue])
  }

  private mutating func note(
    in context: StoreContext, steps: inout Int
  ) throws(StoreError) -> Bool {
    do throws(StoreError) {
      let cursor = try context.engine.headCursor(over: next)
      while steps > 0 {
        guard try cursor.next() else { return true }
        steps -= 1
        let isFull = cursor.withEntry { key, head in context.notes.note(found: head, under: key) }
        guard isFull || steps == 0 else { continue }
        next.lower = cursor.withEntry { key, _ in key.withUnsafeBytes { [UInt8]($0) } + [0] }
        if isFull { try context.writeNotes() }
      }
      return false
    } catch .corrupt {
      // Everything readable was visited.
      return true
    }
  }

  /// Removes rows of the key space that the scan is in; returns whether it is through.
  private mutating func removeRows(
    in context: StoreContext, steps: inout Int, if isOld: (RawSpan) -> Bool
  ) throws(StoreError) -> Bool {
    do throws(StoreError) {
      let cursor = try context.engine.cursor(over: next)
      var isThrough = false
      while !isThrough, steps > 0 {
        var rows = WriteBatch()
        rows.isAlwaysAdmitted = true
        var last: [UInt8]?
        while steps > 0, rows.rows.count < Self.removedRows {
          isThrough = try !cursor.next()
          if isThrough { break }
          steps -= 1
          last = cursor.withEntry { key, _ in
            if isOld(key) { rows.remove(key) }
            return key.withUnsafeBytes { [UInt8]($0) }
          }
        }
        if !rows.isEmpty { try context.engine.write(&rows, synced: false) }
        if let last { next.lower = last + [0] }
      }
      return isThrough
    } catch .corrupt {
      return true
    }
  }
}
