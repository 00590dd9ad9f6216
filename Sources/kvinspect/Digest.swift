import ArgumentParser
import LarderInspection

struct Digest: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Write a digest of all records, which is equal for stores with equal records.",
    discussion: """
      It covers what export writes of each record, and does not depend on files, the ids of caches \
      or the order of saves. It is not cryptographic (FNV-1a, 128 bits). With --quiet, only the \
      total is written. In csv and jsonl the row without a cache is the total.
      """)

  @OptionGroup var shared: SharedOptions
  @OptionGroup var records: RecordOptions

  func run() throws {
    try shared.report { inspection, style throws(InspectionError) in
      try inspection.digest(of: records.selection, style: style)
    }
  }
}
