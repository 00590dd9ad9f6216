// What goes into a load machine, and what comes out of it.

extension LoadMachine {
  /// A caller, or a refresh for which no caller waits.
  struct Ask {
    let call: LoadCall
    /// The place of the key in the call.
    var index = 0
    let waiter: Int?
    /// The flight to start if none is open for the key, and the ticket of its save.
    let flight: Int
    var ticket = WriteTicket()
    /// Whether the caller is a load itself.
    var isNested = false
    /// Whether the caller gets a flight of its own, which other callers do not join.
    var isAlone = false
    /// The number of times that tags were invalidated before the call.
    var epoch: UInt64 = 0
    var looking = Looking.byTask

    var key: RecordKey { call.keys[index] }
  }

  /// Who reads what a flight begins with.
  enum Looking {
    /// The flight's task reads it.
    case byTask
    /// A call has begun to read it before there was a flight, and is not done yet.
    case byCall
    /// A call has read it, and found this.
    case done(LoadFound)
  }

  enum Event {
    case asked(Ask)
    /// What is on disk now, for each member.
    case found(flight: Int, [LoadFound])
    case failed(flight: Int, any Error, isFinal: Bool)
    /// One reply for each member to load.
    case replied(flight: Int, [LoadReply<any Sendable>])
    /// One outcome for each member to save.
    case saved(flight: Int, [LoadSaving])
    case delayIsOver(flight: Int)
    case left(waiter: Int, any Error)
    case softTimeout(waiter: Int)
    case hardTimeout(flight: Int)
    case closed
  }

  enum Answer {
    /// The entry that the flight has found; with the error of a load that failed.
    case entry(isRefreshing: Bool, failure: (any Error)?)
    /// What the load has brought.
    case loaded(LoadSaving)
    case absent
    case failure(any Error)
  }

  enum Effect {
    case look(flight: Int)
    case joined(flight: Int)
    case load(flight: Int)
    case save(flight: Int)
    case delay(flight: Int, attempt: Int, atLeast: Duration?)
    /// The hard timeout of the flight begins.
    case limit(flight: Int)
    /// Its task is to be cancelled. The flight may have ended.
    case cancel(Flight)
    case end(Flight)
    case answer(waiter: Int, LoadPart?, Answer)
    /// The waiter is to ask again, alone.
    case askAgain(waiter: Int)
    /// The key is no longer remembered as absent.
    case forget(RecordKey, WriteTicket)
    /// What the watchers of a key hear, if there are any.
    case news(RecordKey, News)
  }

  /// What happens to the load of a key.
  enum News {
    case began
    /// Its reply is about to be saved.
    case saving
    case ended(failure: (any Error)?, wasSaving: Bool)
  }
}
