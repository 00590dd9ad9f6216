/// The state of a stream: its bytes, its open containers, and what is kept for later payloads.
struct StreamState: ~Copyable {
  /// A value that is encoding itself.
  struct Active {
    /// Its number; 0 if there is none, or the stream is abandoned.
    var id = 0
    /// The offset of the value.
    var start = 0
    /// The number of frames around the value.
    var level = 0
    /// The number of `encode(to:)` calls that have not returned.
    var nesting = 0
    /// The number of the innermost frame of the value; 0 if there is none.
    var openID = 0
    var isMap = false
  }

  /// A list, map or object that has not ended yet, or the place of one.
  struct Frame {
    enum Form {
      case list, map, object
      /// A super encoder has been handed out, and has written nothing yet.
      case placeholder

      var isKeyed: Bool { self == .object || self == .map }
    }

    var id: Int
    let form: Form
    /// The offset of the number of elements or entries, of the shape's number, or of what the super
    /// encoder will write.
    let head: Int
    /// The number of elements, entries or fields so far.
    var count = 0
    /// The object's shape so far, or the predicted one; nil if there is none yet.
    var shape: Int?
    /// Whether the shape is new, and grows with the object.
    var isNew = false
    var prediction = 0
    // Unsafe: points into the fields of a whole shape, which are kept until the payload has ended.
    /// The predicted next field; one that equals no field if there is no prediction.
    var next: UnsafePointer<StreamShapes.Field>
  }

  /// The bytes written so far; the caller's buffer while a payload is written.
  var bytes = ByteBuffer()
  var isAbandoned = false
  var active = Active()
  /// The number of the last value or frame, which no later payload uses again.
  var lastID = 0
  /// The largest number of open frames.
  var maximumFrames: Int
  // Unsafe: `Binary.maximumDepth` frames, of which the first `frameCount` are initialized; freed in
  // `deinit`.
  let frames: UnsafeMutablePointer<Frame>
  var frameCount = 0
  var shapes: StreamShapes
  var links: StreamLinks
  var forms = FormCache<TypeForm>()
  /// Whether a part of this payload could not be written without `Codable`.
  var refusesParts = false

  /// Makes the state of a stream with `depth` containers around it.
  init(within depth: Int, keepsContainers: Bool) {
    maximumFrames = Binary.maximumDepth - depth
    frames = .allocate(capacity: Binary.maximumDepth)
    shapes = StreamShapes(reserved: depth == 0 ? 0 : 1)
    links = StreamLinks(keepsContainers: keepsContainers)
  }

  deinit { frames.deallocate() }

  /// Prepares the state for another payload.
  mutating func endPayload() {
    links.endPayload()
    shapes.reset()
    isAbandoned = false
    refusesParts = false
    frameCount = 0
  }
}
