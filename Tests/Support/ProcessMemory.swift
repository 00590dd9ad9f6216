import CTestSupport
import Foundation

/// The most memory that the process has had so far, in bytes.
package func peakMemory() -> Int {
  var usage = rusage()
  #if canImport(Darwin)
    getrusage(RUSAGE_SELF, &usage)
    return usage.ru_maxrss
  #else
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return usage.ru_maxrss << 10
  #endif
}

/// The bytes that this process has allocated and not freed.
package func allocatedBytes() -> Int { allocated_bytes() }
