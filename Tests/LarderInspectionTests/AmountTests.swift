import Testing

@testable import LarderInspection

/// Sizes and numbers are written as people read them.
@Suite struct AmountTests {
  @Test(
    "A size has a unit and is rounded to the nearest tenth.",
    arguments: [
      (0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (1049, "1.0 KB"), (1050, "1.1 KB"),
      (999_949, "999.9 KB"), (999_950, "1.0 MB"), (199_700_000, "199.7 MB"),
      (2_000_000_000_000_000, "2 PB"), (.max, "9,223 PB"), (-1, "-1 B"), (.min, "\(Int.min) B"),
    ])
  func sizes(count: Int, text: String) {
    #expect(Amount.bytes(count) == text)
  }

  @Test(
    "A number has commas between thousands.",
    arguments: [
      (0, "0"), (999, "999"), (1000, "1,000"), (-1_234_567, "-1,234,567"),
      (.max, "9,223,372,036,854,775,807"), (.min, "-9,223,372,036,854,775,808"),
    ])
  func numbers(number: Int, text: String) {
    #expect(Amount.text(number) == text)
  }
}
