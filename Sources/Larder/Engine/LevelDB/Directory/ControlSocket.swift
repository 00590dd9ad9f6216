#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

import CLarder
import Dispatch

/// The names of the socket of a store that accepts commands; see ``ControlSocket``.
package enum ControlFile {
  package static let name = "LARDER.control"
  /// The name under which it is created, before it is renamed.
  package static let newName = "LARDER.control.new"
}

/// What a control socket says to its clients.
package struct ControlService: Sendable {
  /// The first line of a connection.
  package var greeting: [UInt8]
  /// The line in its place if there are too many connections.
  package var refusal: [UInt8]
  /// The answer to a request that is too long.
  package var objection: [UInt8]
  /// Calls a closure after a time, unless what it returns is called before.
  package var timer: @Sendable (Duration, @escaping @Sendable () -> Void) -> @Sendable () -> Void
  /// Does what a request asks for on another thread, and calls `reply` with the line that answers
  /// it.
  package var answer: Answer

  package typealias Answer =
    @Sendable (_ request: [UInt8], _ reply: @escaping @Sendable ([UInt8]) -> Void) -> Void

  package init(
    greeting: [UInt8], refusal: [UInt8], objection: [UInt8],
    timer: @escaping @Sendable (Duration, @escaping @Sendable () -> Void) -> @Sendable () -> Void,
    answer: @escaping Answer
  ) {
    (self.greeting, self.refusal, self.objection) = (greeting, refusal, objection)
    (self.timer, self.answer) = (timer, answer)
  }
}

/// A socket in a store's directory, over which other processes of the user give commands to the
/// process that has the store open.
///
/// A connection is for one request: the server sends a greeting, the client a line, the server a
/// line, and the connection is closed. Nothing that a client does makes another one wait for more
/// than ``patience``, or takes more memory than ``requestLimit`` for each of ``mostConnections``.
/// Connections of other users are closed at once; `root` may do anything anyway.
///
/// A clean close removes the file. A killed process leaves it, and nobody listens there; the next
/// opening replaces it. A forked child has the socket and not the queue, so nothing is answered if
/// the parent ends before it.
final class ControlSocket: Sendable {
  /// The largest request, without the end of its line: a key of 64 KiB in base64 has 87,384 bytes.
  static let requestLimit = 128 << 10
  static let mostConnections = 16
  /// The time in which a request must be sent.
  static let patience = Duration.seconds(5)

  // Not private: Swift 6.3 cannot compile a private type in a lock of another file's property.
  struct Listener {
    let path: String
    /// The file; another process may have replaced it in a directory that was moved.
    let identity: FileIdentity?
    let cancel: @Sendable () -> Void
    let pause: @Sendable () -> Void
    let proceed: @Sendable () -> Void
    var isPaused = false
  }

  struct State {
    var service: ControlService?
    var listener: Listener?
    var connections: [Int: ControlConnection] = [:]
    var lastNumber = 0
  }

  private let state = Lock(State())
  private let queue = DispatchQueue(label: "larder.control", qos: .utility)

  /// Listens in a store's directory, whose guard the caller holds.
  ///
  /// - Throws: ``StoreError/io(_:)`` if the directory can have no socket, or its path is too long
  ///   for one; ``StoreError/diskFull``. Nobody listens then.
  func begin(in directory: String, for service: ControlService) throws(StoreError) {
    try state.withLock { state throws(StoreError) in
      guard state.listener == nil else { return }
      state.listener = try listen(in: directory)
      state.service = service
    }
  }

  /// Listens again, if the socket was in use before ``end()``.
  func restart(in directory: String) throws(StoreError) {
    guard let service = state.withLock({ $0.service }) else { return }
    try begin(in: directory, for: service)
  }

  /// Removes the file, and closes the connections whose request was not received.
  ///
  /// Requests that were received are answered nevertheless.
  func end() {
    let (listener, connections) = state.withLock { state in
      defer { (state.listener, state.connections) = (nil, [:]) }
      return (state.listener, state.connections)
    }
    guard let listener else { return }
    if FileIdentity(ofFileAt: listener.path) == listener.identity { unlink(listener.path) }
    listener.cancel()
    // A paused source would never be cancelled.
    if listener.isPaused { listener.proceed() }
    for connection in connections.values { connection.finish(nil) }
  }

  private func listen(in directory: String) throws(StoreError) -> Listener {
    let path = "\(directory)/\(ControlFile.name)"
    let descriptor = clarder_listen(directory, ControlFile.name, ControlFile.newName)
    guard descriptor >= 0 else {
      throw failure("cannot listen at", path, errno: -descriptor)
    }
    // The closures are called from any thread, which is allowed.
    nonisolated(unsafe) let source = DispatchSource.makeReadSource(
      fileDescriptor: descriptor, queue: queue)
    source.setEventHandler { [weak self] in self?.accept(from: descriptor) }
    source.setCancelHandler { close(descriptor) }
    source.activate()
    return Listener(
      path: path, identity: FileIdentity(ofFileAt: path), cancel: { source.cancel() },
      pause: { source.suspend() }, proceed: { source.resume() })
  }
}

extension ControlSocket {
  /// Accepts the connections that wait, up to some.
  private func accept(from listener: Int32) {
    for _ in 0..<64 {
      let descriptor = clarder_accept(listener)
      switch -descriptor {
      case ...0: admit(ControlConnection(descriptor))
      // The client has gone.
      case ECONNABORTED, EPROTO: break
      case EMFILE, ENFILE, ENOMEM, ENOBUFS: return pause()
      default: return
      }
    }
  }

  /// Accepts none for a second: the process has no descriptor for one.
  private func pause() {
    let timer = state.withLock { state -> ControlService? in
      guard state.listener?.isPaused == false else { return nil }
      state.listener?.isPaused = true
      state.listener?.pause()
      return state.service
    }?.timer
    _ = timer?(.seconds(1)) { [weak self] in
      self?.state.withLock { state in
        guard state.listener?.isPaused == true else { return }
        state.listener?.isPaused = false
        state.listener?.proceed()
      }
    }
  }

  private func admit(_ connection: ControlConnection) {
    guard connection.isOfUser else { return }
    let (service, number) = state.withLock { state -> (ControlService?, Int?) in
      guard state.listener != nil else { return (nil, nil) }
      guard state.connections.count < Self.mostConnections else { return (state.service, nil) }
      state.lastNumber += 1
      state.connections[state.lastNumber] = connection
      return (state.service, state.lastNumber)
    }
    guard let service else { return }
    guard let number else { return connection.send(service.refusal) }
    connection.send(service.greeting)
    let release: @Sendable () -> Void = { [weak self] in self?.release(number) }
    connection.receive(on: queue, upTo: Self.requestLimit) { request in
      guard let request else { return release() }
      guard request.count <= Self.requestLimit else {
        release()
        return connection.send(service.objection)
      }
      service.answer(request) { line in
        // Before the client knows, who may give the next command then.
        release()
        connection.send(line)
      }
    }
    connection.finishLater(by: service.timer)
  }

  private func release(_ number: Int) { state.withLock { $0.connections[number] = nil } }
}

/// A connection of a ``ControlSocket``; it is closed with its last reference.
final class ControlConnection: Sendable {
  typealias Completion = @Sendable (_ request: [UInt8]?) -> Void

  struct Reading {
    var bytes: [UInt8] = []
    let limit: Int
    let completion: Completion
    let cancel: @Sendable () -> Void
    var endTimer: (@Sendable () -> Void)?
  }

  private let descriptor: Int32
  /// Nil once the request was received, or nobody waits for it any more.
  private let reading = Lock<Reading?>(nil)

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { close(descriptor) }

  /// Whether the other end belongs to the user of this process, or to `root`.
  fileprivate var isOfUser: Bool {
    guard let user = SocketPeer(of: descriptor)?.user else { return false }
    return user == geteuid() || user == 0
  }

  /// Sends a line, if the system takes it without waiting; a client that does not read loses it.
  fileprivate func send(_ line: [UInt8]) { _ = clarder_send(descriptor, line, line.count) }

  /// Receives the first line, and calls `completion` with it once; with nil if it does not come,
  /// and with more than `limit` bytes if it is longer.
  fileprivate func receive(
    on queue: DispatchQueue, upTo limit: Int, then completion: @escaping Completion
  ) {
    // Only `cancel` is called from here on, which is allowed on any thread.
    nonisolated(unsafe) let source = DispatchSource.makeReadSource(
      fileDescriptor: descriptor, queue: queue)
    // Until it is cancelled, the source holds the connection, which so stays open.
    source.setEventHandler { self.receiveMore() }
    reading.withLock {
      $0 = Reading(limit: limit, completion: completion, cancel: { source.cancel() })
    }
    source.activate()
  }

  /// Gives up the request after ``ControlSocket/patience``.
  fileprivate func finishLater(
    by timer: (Duration, @escaping @Sendable () -> Void) -> @Sendable () -> Void
  ) {
    let end = timer(ControlSocket.patience) { [weak self] in self?.finish(nil) }
    let isOver = reading.withLock { reading in
      reading?.endTimer = end
      return reading == nil
    }
    if isOver { end() }
  }

  private func receiveMore() {
    var piece = [UInt8](repeating: 0, count: 16 << 10)
    let count = Int(clarder_receive(descriptor, &piece, piece.count))
    guard count != Int(-EAGAIN) else { return }
    guard count > 0 else { return finish(nil) }
    let end = piece[..<count].firstIndex(of: UInt8(ascii: "\n"))
    let request = reading.withLock { reading -> [UInt8]? in
      reading?.bytes += piece[..<(end ?? count)]
      guard let reading, end != nil || reading.bytes.count > reading.limit else { return nil }
      return reading.bytes
    }
    if let request { finish(request) }
  }

  /// Ends the receiving.
  fileprivate func finish(_ request: [UInt8]?) {
    let reading = reading.withLock { reading in
      defer { reading = nil }
      return reading
    }
    guard let reading else { return }
    reading.cancel()
    reading.endTimer?()
    reading.completion(request)
  }
}
