// The fuzzer's entry point for the readers of LevelDB's files and for imports. `Scripts/fuzz` links
// it with the library's modules.
//
// The first byte of an input selects what the rest is. A fuzzer cannot guess checksums, so each
// reader is also given parts of a file that are put together with the right ones.

import Foundation
import Larder
import LarderInspection

/// Reads one input; the process ends if a reader does not end or leaves the bounds of its bytes.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
  let input = UnsafeRawBufferPointer(start: start, count: count)
  guard let choice = input.first else { return 0 }
  let rest = Array(input.dropFirst())
  switch choice % 8 {
  case 0:
    readLog(rest)
    readLog(rest, of: .foreignBatches)
  case 1: readLog(log(of: records(in: rest)))
  case 2: readManifest(rest)
  case 3: readManifest(log(of: records(in: rest)))
  case 4: readTable(rest)
  case 5: readTable(table(of: records(in: rest), isCompressed: false))
  case 6: readTable(table(of: records(in: rest), isCompressed: true))
  default: importLines(rest)
  }
  return 0
}

/// Pieces of the input; two bytes before each are its length.
private func records(in input: [UInt8]) -> [[UInt8]] {
  var records: [[UInt8]] = []
  var rest = input[...]
  while rest.count >= 2 {
    let count = Int(rest.removeFirst()) | Int(rest.removeFirst()) << 8
    records.append(Array(rest.prefix(count)))
    rest = rest.dropFirst(count)
  }
  return records
}

private func log(of records: [[UInt8]]) -> [UInt8] {
  var writer = LogWriter()
  for record in records { writer.add(record) }
  return writer.bytes
}

/// A table whose last block is the index, and the block before it the one that names the filter.
private func table(of blocks: [[UInt8]], isCompressed: Bool) -> [UInt8] {
  var bytes: [UInt8] = []
  var places: [(offset: Int, count: Int)] = []
  for block in blocks {
    places.append((bytes.count, block.count))
    let stored = block + [isCompressed ? 1 : 0]
    let sum = stored.withUnsafeBytes { crc32c($0) }
    bytes += stored + withUnsafeBytes(of: maskedForLevelDB(sum).littleEndian, Array.init)
  }
  var footer: [UInt8] = []
  for place in [places.dropLast().last ?? (0, 0), places.last ?? (0, 0)] {
    for number in [place.offset, place.count] {
      var number = number
      while number >= 0x80 {
        footer.append(UInt8(truncatingIfNeeded: number) | 0x80)
        number >>= 7
      }
      footer.append(UInt8(number))
    }
  }
  footer += Array(repeating: 0, count: 40 - footer.count)
  return bytes + footer + [0x57, 0xFB, 0x80, 0x8B, 0x24, 0x75, 0x47, 0xDB]
}

private func readLog(_ bytes: [UInt8], of kind: LogScan.Kind = .batches(minimumSequence: 0)) {
  var scan = LogScan(bytes, of: kind)
  var parts = 0
  while let part = scan.nextPart() {
    parts += 1
    guard parts <= 2 * bytes.count + 2 else { fatalError("a log of \(bytes.count) has no end") }
    guard case .record(let record) = part else { continue }
    scan.withBytes(of: record) { batch in
      guard let rows = LogBatch.rows(of: batch) else { return }
      let size = rows.reduce(0) { $0 + $1.key.count + ($1.value?.count ?? 0) }
      guard size <= batch.byteCount else { fatalError("rows of \(size) bytes in a smaller batch") }
    }
  }
}

private func readManifest(_ bytes: [UInt8]) {
  var scan = LogScan(bytes, of: .manifest)
  while let part = scan.nextPart() {
    guard case .record(let record) = part else { continue }
    _ = scan.withBytes(of: record) { ManifestEdit($0) }
  }
  _ = Manifest(bytes)?.missingFile(in: [])
}

private func readTable(_ bytes: [UInt8]) {
  do throws(TableFile.Fault) {
    let table = try TableFile(bytes)
    for place in table.blocks {
      do throws(TableFile.Fault) {
        let block = try table.block(at: place)
        var entries = TableFile.Entries(of: block)
        while let entry = try entries.next() {
          guard entry.value.upperBound <= block.bytes.count else { fatalError("\(entry.value)") }
          _ = table.blocks(with: entry.key)
        }
      } catch {
        continue
      }
    }
  } catch {
    return
  }
}

/// Where the text of an import is put for the reader, which reads files.
private let importPath = "\(NSTemporaryDirectory())/larder-fuzz-\(getpid())"

private func importLines(_ bytes: [UInt8]) {
  guard FileManager.default.createFile(atPath: importPath, contents: Data(bytes)) else {
    fatalError("cannot write \(importPath)")
  }
  var report = ""
  do throws(InspectionError) {
    let outcome = try Inspection.importing(
      .lines(importPath), to: nil, now: Date(timeIntervalSinceReferenceDate: 0), style: Style()
    ).write(to: &report)
    guard outcome == .fine else { fatalError("\(outcome)") }
  } catch {
    guard [.damaged, .unsupported].contains(error.status) else { fatalError("\(error)") }
  }
}
