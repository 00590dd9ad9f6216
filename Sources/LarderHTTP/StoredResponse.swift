import Foundation
import HTTPTypes
import Larder

/// What a ``ResponseCache`` keeps under a key.
enum Stored: Codable, Sendable {
  case response(StoredResponse)
  /// The response depends on more than the URL: it is under another key.
  case varies(Variants)
}

/// The header fields of requests by which the responses to a URL differ (RFC 9111, section 4.1).
struct Variants: Codable, Sendable, Equatable {
  /// In lower case, in alphabetical order.
  let names: [String]
  /// A random number, a part of each variant's key: once the list is removed or replaced, nobody
  /// finds the old variants any more.
  let generation: UInt64
}

/// A response, with what is needed to judge it later.
struct StoredResponse: Codable, Sendable {
  var status: Int
  /// The names and values of its header fields, in turn.
  var fields: [String]
  var body: Data
  /// The seconds between when the server made it, or the handler was called, and its arrival.
  var age: Int
  /// The seconds for which it is fresh, from when the server made it.
  var freshness: Int

  init(_ response: HTTPResponse, _ body: Data, age: Int = 0, freshness: Int = 0) {
    status = response.status.code
    fields = Self.endToEnd(response.headerFields).flatMap { [$0.name.rawName, $0.value] }
    (self.body, self.age, self.freshness) = (body, age, freshness)
  }

  /// Its age in seconds, some time after it was kept.
  func age(after time: Duration) -> Int { age + Int(max(.zero, time).components.seconds) }

  var headerFields: HTTPFields {
    var result = HTTPFields()
    for index in stride(from: 0, to: fields.count - 1, by: 2) {
      guard let name = HTTPField.Name(fields[index]) else { continue }
      result.append(HTTPField(name: name, value: fields[index + 1]))
    }
    return result
  }

  var response: HTTPResponse {
    HTTPResponse(status: HTTPResponse.Status(code: status), headerFields: headerFields)
  }

  var control: CacheControl { CacheControl(headerFields[.cacheControl] ?? "") }

  /// Whether it must not be used without the handler once it is stale (RFC 9111, sections 4.2.4 and
  /// 5.2.2).
  var mustBeValidated: Bool {
    let control = control
    return control.noCache || control.mustRevalidate || control.proxyRevalidate
      || control.sharedMaxAge != nil
  }

  /// Whether the header fields of a response to HEAD are those of another response (RFC 9111,
  /// section 4.3.5).
  func differs(from fields: HTTPFields) -> Bool {
    func isOther(_ new: String?, _ old: String?) -> Bool { new != nil && new != old }
    let old = headerFields
    return isOther(fields[.eTag], old[.eTag]) || isOther(fields[.lastModified], old[.lastModified])
      || isOther(fields[.contentLength], String(body.count))
  }

  /// The header fields that ask the handler whether it is still right; empty if it cannot.
  var condition: HTTPFields {
    let fields = headerFields
    var condition = HTTPFields()
    condition[.ifNoneMatch] = fields[.eTag]
    condition[.ifModifiedSince] = fields[.lastModified]
    return condition
  }

  /// The response after one with status 304 has confirmed it (RFC 9111, section 3.2).
  func updated(by confirmation: HTTPResponse) -> HTTPResponse {
    var response = response
    // They describe the body, which the confirmation does not have.
    let kept: Set<HTTPField.Name> = [
      .contentLength, .contentEncoding, .contentType, .contentRange, .eTag,
    ]
    let fields = Self.endToEnd(confirmation.headerFields).filter { !kept.contains($0.name) }
    for name in Set(fields.map(\.name)) { response.headerFields[name] = nil }
    for field in fields { response.headerFields.append(field) }
    // An age is that of one response.
    if confirmation.headerFields[.age] == nil { response.headerFields[.age] = nil }
    return response
  }

  /// The fields that are not for one connection only (RFC 9110, section 7.6.1).
  private static func endToEnd(_ fields: HTTPFields) -> [HTTPField] {
    var dropped: Set = [
      "connection", "keep-alive", "proxy-connection", "proxy-authenticate",
      "proxy-authentication-info", "proxy-authorization", "te", "trailer", "transfer-encoding",
      "upgrade",
    ]
    for name in fields[values: .connection].flatMap({ $0.split(separator: ",") }) {
      dropped.insert(name.trimmed.lowercased())
    }
    return fields.filter { !dropped.contains($0.name.canonicalName) }
  }
}

/// Whether a shared cache keeps a response, and how long it is fresh.
///
/// RFC 9111, sections 3 and 4.2. It is stricter in two things. A response without an explicit time
/// of freshness is kept only if the handler can be asked about it each time; there is no heuristic.
/// And a response that sets a cookie is not kept, whatever else it says.
struct SharedStoring {
  let age: Int
  let freshness: Int
  /// How long it is kept after that.
  let stale: Int
  /// The names in `Vary`, in lower case and alphabetical order.
  let varies: [String]

  /// The statuses that `must-understand` is about.
  private static let understood: Set = [
    200, 203, 204, 300, 301, 302, 303, 307, 308, 404, 405, 410, 414, 421, 451, 501,
  ]
  /// The statuses that need no explicit time of freshness (RFC 9110, section 15.1); not 206.
  private static let heuristic: Set = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]

  /// Nil if the response must not be kept.
  ///
  /// - Parameters:
  ///   - response: A response of the handler.
  ///   - body: Its body.
  ///   - request: What it answers.
  ///   - options: The settings of the cache.
  ///   - time: The time that the handler took.
  ///   - now: When it had answered.
  init?(
    _ response: HTTPResponse, _ body: Data, to request: HTTPRequest,
    _ options: ResponseCache.Options, after time: Duration, now: Date
  ) {
    let (fields, code) = (response.headerFields, response.status.code)
    let control = CacheControl(fields[.cacheControl] ?? "")
    // 206 and 304 are parts of other responses.
    let isWhole = (200..<600).contains(code) && code != 206 && code != 304
    let mayStore =
      control.mustUnderstand ? Self.understood.contains(code) : isWhole && !control.noStore
    guard mayStore, !control.isPrivate, fields[.setCookie] == nil,
      body.count <= options.maximumBodyBytes
    else { return nil }
    // Section 3.5.
    let isShared = control.isPublic || control.mustRevalidate || control.sharedMaxAge != nil
    if request.headerFields[.authorization] != nil, !isShared { return nil }
    let names = Set(
      fields[values: .vary].flatMap { $0.split(separator: ",") }.map { $0.trimmed.lowercased() })
    guard !names.contains("*") else { return nil }
    varies = names.filter { !$0.isEmpty }.sorted()

    // Section 4.2.3.
    age = fields.ageOnArrival + limitedSeconds(Int(max(.zero, time).components.seconds))
    let hasValidator = fields[.eTag] != nil || fields[.lastModified] != nil
    // Section 4.2.1.
    let explicit = control.sharedMaxAge ?? control.maxAge ?? fields.secondsToExpiry(now: now)
    let mayAsk = control.isPublic || control.noCache && Self.heuristic.contains(code)
    guard explicit != nil || hasValidator && mayAsk else { return nil }
    freshness = control.noCache ? 0 : max(0, explicit ?? 0)
    let forValidation = hasValidator ? Int(options.keptForValidation.components.seconds) : 0
    stale = max(control.staleWhileRevalidate ?? 0, control.staleIfError ?? 0, forValidation)
    guard freshness > age || stale > 0 else { return nil }
  }

  var lifetime: Lifetime {
    .fresh(for: .seconds(Double(max(0, freshness - age))), thenStaleFor: .seconds(Double(stale)))
  }
}
