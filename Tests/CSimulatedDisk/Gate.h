// When LevelDB's work in the background goes on, so that a script makes the same journal each time.

#ifndef CSIMULATED_DISK_GATE_H
#define CSIMULATED_DISK_GATE_H

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace simdisk {

/// Stands before each piece of work in the background and each of its calls that change the disk.
///
/// It is open until it is held. Then work passes only while somebody lets it, a number of times.
/// Other calls that change the disk come by too, and wait only when the work is preferred.
class Gate {
 public:
  /// The work's side: it was scheduled, begins on this thread, ends, is about to change the disk.
  void scheduled();
  void begin();
  void end();
  void pass();

  /// The other side.
  void hold();
  /// Opens the gate, and lets the others change the disk only while there is no work.
  void prefer();
  void release();
  /// Lets work pass so many times, and returns when it has used that up or there is none.
  void run(size_t times);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  bool preferred_ = false;
  /// Whether the work stands before the gate.
  bool waits_ = false;
  size_t passes_ = 0;
  size_t pending_ = 0;
};

}  // namespace simdisk

#endif
