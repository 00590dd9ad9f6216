import Foundation
import HTTPTypes
import Hummingbird
import LarderHTTP
import NIOFoundationCompat
import Synchronization

/// Answers the requests of a Hummingbird server from a cache of responses, or with another
/// responder.
///
/// It is not a middleware because the cache may call the responder after it has answered, to
/// refresh a stale response.
struct CachedResponder<Next: HTTPResponder>: HTTPResponder where Next.Context: Sendable {
  let responses: ResponseCache
  let next: Next

  func respond(to request: Request, context: Next.Context) async throws -> Response {
    let body = try await request.body.collect(upTo: 1 << 20)
    let (head, reply) = try await responses.respond(to: request.head, body: Data(buffer: body)) {
      head, body in
      let request = Request(head: head, body: RequestBody(buffer: ByteBuffer(bytes: body)))
      let response = try await next.respond(to: request, context: context)
      let collected = Collected()
      try await response.body.write(collected)
      return (response.head, collected.bytes.withLock { $0 })
    }
    return Response(
      status: head.status, headers: head.headerFields,
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: reply)))
  }
}

/// The bytes of a body that was written.
private final class Collected: ResponseBodyWriter, Sendable {
  let bytes = Mutex(Data())

  func write(_ buffer: ByteBuffer) { bytes.withLock { $0.append(Data(buffer: buffer)) } }
  func finish(_ trailers: HTTPFields?) {}
}
