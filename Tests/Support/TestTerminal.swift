import CTestSupport

/// Opens a terminal without a screen: what is written to `writing` can be read from `reading`.
///
/// The caller closes both. Nil if the system has no terminal left.
package func openTerminal(columns: Int32) -> (reading: Int32, writing: Int32)? {
  var writing: Int32 = -1
  let reading = open_terminal(columns, &writing)
  return reading < 0 ? nil : (reading, writing)
}
