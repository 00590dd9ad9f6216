extension StreamWriter {
  /// Begins a list or a map; nil, with the stream abandoned, if it would be nested too deeply.
  func open(_ form: StreamState.Frame.Form) -> StreamLink.Target? {
    state.pointee.bytes.append(form == .list ? WireKind.list.rawValue : WireKind.map.rawValue)
    if form == .list { state.pointee.bytes.append(WireKind.tagged.rawValue) }
    guard let frame = push(form) else { return nil }
    state.pointee.bytes.append(littleEndian: UInt32(0))
    return frame
  }

  /// Begins an object; nil, with the stream abandoned, if it would be nested too deeply.
  @inline(__always)
  func openObject(_ keyType: Any.Type) -> StreamLink.Target? {
    state.pointee.bytes.append(WireKind.object.rawValue)
    guard let target = push(.object) else { return nil }
    let frame = state.pointee.frames + target.level
    frame.pointee.prediction = state.pointee.shapes.prediction(for: ObjectIdentifier(keyType))
    if let shape = state.pointee.shapes.predicted(frame.pointee.prediction) {
      frame.pointee.shape = shape
      frame.pointee.next = state.pointee.shapes.fields(of: shape)
    }
    // The shape's number is set when the object ends.
    state.pointee.bytes.append(0)
    return target
  }

  /// Begins a super encoder in the field or element that was just begun.
  ///
  /// What it writes takes the place of its frame.
  func superEncoder() -> StreamEncoder? {
    guard let frame = push(.placeholder) else { return nil }
    return StreamEncoder(link: state.pointee.links.link(of: frame))
  }

  /// Ends the frame of a super encoder that is about to write; false if it has written already, or
  /// something else was written after it was handed out.
  func endPlaceholder(of encoder: StreamLink.Target) -> Bool {
    let level = encoder.level
    guard state.pointee.active.openID == encoder.id,
      state.pointee.frames[level].form == .placeholder
    else { return false }
    state.pointee.frameCount = level
    openFrameAround(level)
    return true
  }

  /// Makes the frame around a level the innermost one of the active value.
  private func openFrameAround(_ level: Int) {
    state.pointee.active.openID =
      level > state.pointee.active.level ? state.pointee.frames[level - 1].id : 0
  }

  /// Adds a frame whose head is at the end of the bytes.
  @inline(__always)
  private func push(_ form: StreamState.Frame.Form) -> StreamLink.Target? {
    let level = state.pointee.frameCount
    guard level < state.pointee.maximumFrames else {
      abandon()
      return nil
    }
    let id = state.pointee.lastID + 1
    (state.pointee.frames + level).initialize(
      to: StreamState.Frame(
        id: id, form: form, head: state.pointee.bytes.count, next: state.pointee.shapes.nothing))
    state.pointee.frameCount = level + 1
    state.pointee.lastID = id
    state.pointee.active.openID = id
    return StreamLink.Target(writer: self, id: id, level: level)
  }

  /// Makes a container the innermost by ending those within it; false if it has ended already.
  @inline(__always)
  private func enter(_ frame: StreamLink.Target) -> Bool {
    state.pointee.active.openID == frame.id || enterAgain(frame)
  }

  @inline(never)
  private func enterAgain(_ frame: StreamLink.Target) -> Bool {
    guard frame.level < state.pointee.frameCount,
      state.pointee.frames[frame.level].id == frame.id,
      frame.level >= state.pointee.active.level
    else {
      abandon()
      return false
    }
    while state.pointee.frameCount - 1 > frame.level { close() }
    return !state.pointee.isAbandoned
  }

  /// The number of elements, entries or fields written to a container.
  func count(of frame: StreamLink.Target) -> Int {
    guard frame.level < state.pointee.frameCount,
      state.pointee.frames[frame.level].id == frame.id
    else { return 0 }
    return state.pointee.frames[frame.level].count
  }

  /// Begins an element of a list; false if the stream is abandoned.
  func beginElement(of list: StreamLink.Target) -> Bool {
    guard enter(list) else { return false }
    // In one expression with the next line, the compiler crashes for the thread sanitizer.
    let frame = state.pointee.frames + list.level
    frame.pointee.count += 1
    return true
  }

  /// How the caller must write a field: not at all, as a body, or tagged as a map's entry.
  enum Field { case abandoned, body, entry }

  /// Begins a field of an object, or an entry of a map unless it `isAbsent`.
  @inline(__always)
  func beginField(
    of target: StreamLink.Target, _ name: String, _ kind: UInt8, isAbsent: Bool = false
  ) -> Field {
    guard enter(target) else { return .abandoned }
    let frame = state.pointee.frames + target.level
    let next = frame.pointee.next
    guard next.pointee.kind == kind, next.pointee.name == name else {
      return beginOtherField(frame, name, kind, isAbsent: isAbsent)
    }
    frame.pointee.next = next + 1
    frame.pointee.count += 1
    return .body
  }

  @inline(never)
  private func beginOtherField(
    _ frame: UnsafeMutablePointer<StreamState.Frame>, _ name: String, _ kind: UInt8,
    isAbsent: Bool
  ) -> Field {
    guard frame.pointee.form == .map else {
      return addField(frame, name, kind) ? .body : .abandoned
    }
    if isAbsent { return .entry }
    state.pointee.bytes.append(text: name)
    frame.pointee.count += 1
    return .entry
  }

  /// Ends the innermost container.
  func close() {
    let level = state.pointee.frameCount - 1
    let frame = state.pointee.frames + level
    state.pointee.frameCount = level
    openFrameAround(level)
    guard frame.pointee.form == .object else {
      if frame.pointee.form == .placeholder { return writeEmptyMap() }
      return state.pointee.bytes.set(
        UInt32(clamping: frame.pointee.count), at: frame.pointee.head)
    }
    guard let number = endShape(of: frame) else { return }
    state.pointee.bytes.set(number, at: frame.pointee.head)
  }

  /// Returns the number of an object's shape; nil if it has none.
  @inline(__always)
  private func endShape(of frame: UnsafeMutablePointer<StreamState.Frame>) -> UInt8? {
    if !frame.pointee.isNew, frame.pointee.count > 0, let shape = frame.pointee.shape,
      frame.pointee.next.pointee.kind == WireKind.null.rawValue,
      let number = state.pointee.shapes.number(of: shape)
    {
      return number
    }
    return endOtherShape(of: frame)
  }

  @inline(never)
  private func endOtherShape(of frame: UnsafeMutablePointer<StreamState.Frame>) -> UInt8? {
    if frame.pointee.count == 0 {
      // An object without fields is written as an empty map.
      state.pointee.bytes.truncate(to: frame.pointee.head - 1)
      writeEmptyMap()
      return nil
    }
    guard let shape = frame.pointee.shape,
      let number = state.pointee.shapes.end(
        shape, fields: frame.pointee.count, isNew: frame.pointee.isNew,
        prediction: frame.pointee.prediction)
    else {
      abandon()
      return nil
    }
    return number
  }

  /// Finds or begins a shape for an object whose next field differs from the predicted shape's;
  /// false if the stream is abandoned.
  private func addField(
    _ frame: UnsafeMutablePointer<StreamState.Frame>, _ name: String, _ kind: UInt8
  ) -> Bool {
    let count = frame.pointee.count
    if !frame.pointee.isNew {
      if let shape = state.pointee.shapes.whole(after: count, of: frame.pointee.shape, name, kind) {
        frame.pointee.shape = shape
        frame.pointee.next = state.pointee.shapes.fields(of: shape, from: count + 1)
        frame.pointee.count += 1
        return true
      }
      guard let shape = state.pointee.shapes.begin(count, of: frame.pointee.shape) else {
        abandon()
        return false
      }
      frame.pointee.shape = shape
      frame.pointee.next = state.pointee.shapes.nothing
      frame.pointee.isNew = true
    }
    // A shape has one field of a name; the tree handles a field that is set twice.
    guard let shape = frame.pointee.shape, state.pointee.shapes.add(name, kind, to: shape) else {
      abandon()
      return false
    }
    frame.pointee.count += 1
    return true
  }
}
