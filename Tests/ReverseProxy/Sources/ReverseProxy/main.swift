import AsyncHTTPClient
import HTTPTypes
import Hummingbird
import Larder
import LarderHTTP
import NIOHTTP1

/// Passes requests on to another server.
struct Origin: HTTPResponder {
  let url: String
  let client: HTTPClient

  func respond(to request: Request, context: BasicRequestContext) async throws -> Response {
    var forwarded = HTTPClientRequest(url: url + (request.head.path ?? "/"))
    forwarded.method = HTTPMethod(rawValue: request.head.method.rawValue)
    for field in request.headers {
      forwarded.headers.add(name: field.name.rawName, value: field.value)
    }
    forwarded.body = .bytes(try await request.body.collect(upTo: 1 << 20))
    let response = try await client.execute(forwarded, timeout: .seconds(30))
    var fields = HTTPFields()
    for (name, value) in response.headers {
      // The server frames the body itself.
      guard let name = HTTPField.Name(name), name != .transferEncoding else { continue }
      fields.append(HTTPField(name: name, value: value))
    }
    let body = try await response.body.collect(upTo: 8 << 20)
    return Response(
      status: HTTPResponse.Status(
        code: Int(response.status.code), reasonPhrase: response.status.reasonPhrase),
      headers: fields, body: ResponseBody(byteBuffer: body))
  }
}

guard CommandLine.arguments.count == 3, let port = Int(CommandLine.arguments[1]) else {
  fatalError("usage: ReverseProxy PORT URL-OF-THE-SERVER")
}
var configuration = HTTPClient.Configuration()
// The server may be closing a connection that waits for another request.
configuration.maximumUsesPerConnection = 1
let client = HTTPClient(configuration: configuration)
let proxy = CachedResponder(
  responses: try ResponseCache(in: Store.inMemory()),
  next: Origin(url: CommandLine.arguments[2], client: client))
let server = Application(
  responder: proxy, configuration: .init(address: .hostname("127.0.0.1", port: port)))
try await server.runService()
try await client.shutdown().get()
