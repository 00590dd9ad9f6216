/// A step of a cursor is so short that its ratio is not meaningful; the difference is.
private let stepMargin = 10.0
/// The same number as in `db_bench`.
private let batchRecords = 1000
/// The same size as in `db_bench`.
private let largeValueBytes = 100_000

extension EngineSuite where Other: FullSide {
  /// All contests, in the order of the table.
  var contests: [Contest] {
    // The values add up to as many bytes as those of four fills with small values.
    let large = filled * 4 * Scale.valueBytes / largeValueBytes
    return [
      fillseq,
      fill("fillrandom", Plan(records: filled, order: Plan.random(filled, from: filled)), putEach),
      fill(
        "fillbatch", Plan(records: filled, order: Plan.sequence(filled)),
        Work(
          a: { try $0.putBatches($1, of: batchRecords) },
          b: { try $0.putBatches($1, of: batchRecords) })),
      fill(
        "fill100K",
        Plan(
          records: large, order: Plan.random(large, from: large), valueBytes: largeValueBytes),
        putEach),
      overwrite("overwrite", Plan(records: records, order: anyRecord)),
      readrandom,
      read(
        "readmissing", Plan(records: records, order: anyRecord, suffix: "."),
        Work(a: { try $0.missEach($1) }, b: { try $0.missEach($1) })),
      readhot,
      read(
        "readseq", Plan(records: records, order: Plan.sequence(records)), margin: stepMargin,
        Work(a: { try $0.scan($1) }, b: { try $0.scan($1) })),
    ]
  }
}
