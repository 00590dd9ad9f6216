/// Moves past a type, and finds its form.
enum TypeParser {
  static func parse(_ cursor: inout Cursor) throws(Refusal) -> TypeForm {
    var form = try single(&cursor)
    while true {
      if cursor.take("&") {
        form = try single(&cursor)
      } else if let next = cursor.next, next.isWord("async") || next.isWord("throws") {
        cursor.at += 1
        if cursor.isAtSign("(") { cursor.skip() }
      } else if cursor.take("->") {
        _ = try parse(&cursor)
        return .function
      } else {
        return form
      }
    }
  }

  private static func single(_ cursor: inout Cursor) throws(Refusal) -> TypeForm {
    skipSpecifiers(&cursor)
    var form: TypeForm
    if let open = cursor.next, let close = open.partner, open.isSign("(") || open.isSign("[") {
      var commas = Cursor(cursor.path, cursor.tokens, (cursor.at + 1)..<close)
      var isTuple = commas.next == nil
      while let token = commas.next {
        if token.isSign(",") { isTuple = true }
        commas.skip()
      }
      form = open.isSign("(") && isTuple ? .tuple : .plain
      cursor.skip()
    } else {
      form = try name(&cursor)
    }
    while let next = cursor.next {
      if (next.isSign("?") || next.isSign("!")) && !next.hasSpaceBefore {
        form = form == .optional || form == .doubleOptional ? .doubleOptional : .optional
        cursor.at += 1
      } else if next.isSign("."), let member = cursor.following, member.kind == .word {
        cursor.at += 2
        form = .plain
      } else {
        break
      }
    }
    return form
  }

  private static func skipSpecifiers(_ cursor: inout Cursor) {
    let specifiers: Set = ["any", "some", "inout", "sending", "borrowing", "consuming", "repeat"]
    while let token = cursor.next {
      if token.isSign("@") {
        cursor.at += 2
        if let open = cursor.next, open.isSign("("), !open.hasSpaceBefore { cursor.skip() }
      } else if token.isSign("~") || token.kind == .word && specifiers.contains(token.text) {
        cursor.at += 1
      } else {
        return
      }
    }
  }

  /// Moves past a name, the names after points, and generic arguments.
  private static func name(_ cursor: inout Cursor) throws(Refusal) -> TypeForm {
    var form = TypeForm.plain
    repeat {
      guard let token = cursor.next, token.kind == .word else {
        throw cursor.refusal("a type is expected")
      }
      cursor.at += 1
      form = token.text == "Optional" ? .optional : .plain
      guard cursor.isAtSign("<") else { continue }
      if form == .optional {
        var argument = cursor
        argument.at += 1
        if try parse(&argument) == .optional { form = .doubleOptional }
      }
      cursor.skipGenericArguments()
    } while cursor.isAtSign(".") && cursor.following?.kind == .word && cursor.take(".")
    return form
  }
}
