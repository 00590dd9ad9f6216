import FlyingFox
import Foundation
import HTTPTypes

// Converts requests and responses between FlyingFox and swift-http-types.

extension FlyingFox.HTTPRequest {
  var standard: HTTPTypes.HTTPRequest {
    HTTPTypes.HTTPRequest(
      method: HTTPTypes.HTTPRequest.Method(rawValue: method.rawValue) ?? .get, scheme: "http",
      authority: headers[.host], path: target.rawValue, headerFields: standardFields(headers))
  }

  /// The request with the header fields of another one.
  func with(_ changed: HTTPTypes.HTTPRequest) -> FlyingFox.HTTPRequest {
    var request = self
    request.headers = foxHeaders(changed.headerFields)
    return request
  }
}

extension FlyingFox.HTTPResponse {
  var standard: (HTTPTypes.HTTPResponse, Data) {
    get async throws {
      let response = HTTPTypes.HTTPResponse(
        status: HTTPTypes.HTTPResponse.Status(code: statusCode.code),
        headerFields: standardFields(headers))
      return (response, try await bodyData)
    }
  }

  init(_ response: HTTPTypes.HTTPResponse, _ body: Data) {
    self.init(
      statusCode: HTTPStatusCode(response.status.code, phrase: response.status.reasonPhrase),
      headers: foxHeaders(response.headerFields), body: body)
  }
}

private func standardFields(_ headers: HTTPHeaders) -> HTTPFields {
  var fields = HTTPFields()
  for (header, value) in headers {
    if let name = HTTPField.Name(header.rawValue) {
      fields.append(HTTPField(name: name, value: value))
    }
  }
  return fields
}

private func foxHeaders(_ fields: HTTPFields) -> HTTPHeaders {
  var headers = HTTPHeaders()
  for field in fields { headers.addValue(field.value, for: HTTPHeader(field.name.rawName)) }
  return headers
}
