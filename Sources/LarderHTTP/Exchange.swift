import Foundation
import HTTPTypes
import Larder

/// A GET or HEAD request, and what the cache says of its answer.
struct Exchange: Sendable {
  let request: HTTPRequest
  let body: Data
  let handler: ResponseCache.Handler
  let control: CacheControl
  /// The key of the URL; nil if the request is not for the cache.
  let key: String?

  init(_ request: HTTPRequest, _ body: Data, _ handler: @escaping ResponseCache.Handler) {
    (self.request, self.body, self.handler) = (request, body, handler)
    let fields = request.headerFields
    var control = CacheControl(fields[.cacheControl] ?? "")
    // RFC 9111, section 5.4.
    if fields[.cacheControl] == nil, let pragma = HTTPField.Name("Pragma").flatMap({ fields[$0] }) {
      control.noCache = CacheControl(pragma).noCache
    }
    self.control = control
    // The handler alone knows what these are about.
    let others: [HTTPField.Name] = [.range, .ifRange, .ifMatch, .ifUnmodifiedSince]
    let isForCache = !control.noStore && body.isEmpty && others.allSatisfy { fields[$0] == nil }
    key = isForCache ? Self.key(request) : nil
  }

  /// The key of a request's URL; nil if it has a part that no URL has, or is too long.
  static func key(_ request: HTTPRequest) -> String? {
    let authority = (request.authority ?? "").lowercased()
    let key = "\(request.scheme ?? "")://\(authority)\(request.path ?? "/")"
    // A line break separates the parts of a variant's key.
    let isURL = key.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    return isURL && key.utf8.count <= 8192 ? key : nil
  }

  /// The key of a URL that a response names; nil if it is another server's, or no URL.
  static func key(of reference: String, beside request: HTTPRequest) -> String? {
    guard let base = request.url, let url = URL(string: reference, relativeTo: base)?.absoluteURL,
      url.host() != nil, url.scheme != nil
    else { return nil }
    let other = HTTPRequest(url: url)
    guard other.authority?.lowercased() == request.authority?.lowercased() else { return nil }
    return key(other)
  }

  /// The request as the handler gets it to fill the cache: without the client's conditions.
  func unconditional(with condition: HTTPFields = [:]) -> HTTPRequest {
    var request = request
    request.headerFields[.ifNoneMatch] = nil
    request.headerFields[.ifModifiedSince] = nil
    for field in condition { request.headerFields[field.name] = field.value }
    return request
  }

  /// The response as the client gets it: with status 304 if it has the response, and without a body
  /// for HEAD (RFC 9110, sections 13.1 and 9.3.2).
  func answer(_ response: HTTPResponse, _ body: Data) -> (HTTPResponse, Data) {
    if response.status == .ok, isCurrent(response.headerFields) {
      var confirmation = HTTPResponse(status: .notModified)
      let names: Set<HTTPField.Name> = [
        .age, .cacheControl, .contentLocation, .date, .eTag, .expires, .vary, .cacheStatus,
      ]
      for field in response.headerFields where names.contains(field.name) {
        confirmation.headerFields.append(field)
      }
      return (confirmation, Data())
    }
    return (response, request.method == .head ? Data() : body)
  }

  /// Whether the client has the response already.
  private func isCurrent(_ fields: HTTPFields) -> Bool {
    if let list = request.headerFields[.ifNoneMatch] {
      func weak(_ tag: Substring) -> Substring { tag.hasPrefix("W/") ? tag.dropFirst(2) : tag }
      if list.trimmed == "*" { return true }
      guard let tag = fields[.eTag] else { return false }
      return entityTags(list).contains { weak($0[...]) == weak(tag[...]) }
    }
    // Without `Last-Modified`, `Date` is compared (RFC 9111, section 4.3.2).
    guard let since = request.headerFields[.ifModifiedSince].flatMap({ httpDate($0) }),
      let modified = (fields[.lastModified] ?? fields[.date]).flatMap({ httpDate($0) })
    else { return false }
    return modified <= since
  }

  /// The tags of a list; a tag may have commas between its quotation marks.
  private func entityTags(_ list: String) -> [String] {
    var (tags, tag, isQuoted): ([String], String, Bool) = ([], "", false)
    for character in list {
      if character == "\"" { isQuoted.toggle() }
      if character == ",", !isQuoted {
        tags.append(tag.trimmed)
        tag = ""
      } else {
        tag.append(character)
      }
    }
    return tags + [tag.trimmed]
  }
}

extension HTTPField.Name {
  // A valid name, so it is never nil.
  static let cacheStatus = HTTPField.Name("Cache-Status") ?? .age
}

/// A key under which a response is looked for, with the fields that it depends on.
struct Selected: Sendable {
  let key: String
  /// The key of the URL.
  let primary: String
  var names: [String] = []
  var isVariant: Bool { !names.isEmpty }

  init(key: String) { (self.key, primary) = (key, key) }

  init(_ variants: Variants, of exchange: Exchange, under key: String) {
    (names, primary) = (variants.names, key)
    let fields = exchange.request.headerFields
    let lines = variants.names.map { name in
      let values = HTTPField.Name(name).map { fields[values: $0].map(\.trimmed) } ?? []
      return "\(name):\(values.joined(separator: ","))"
    }
    self.key = ([key, "\(variants.generation)"] + lines).joined(separator: "\n")
  }
}
