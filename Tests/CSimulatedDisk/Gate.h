// Controls when LevelDB's background work continues, so that a script makes the same journal again.

#ifndef CSIMULATED_DISK_GATE_H
#define CSIMULATED_DISK_GATE_H

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace simdisk {

/// A gate that background work passes before it starts and before each call that changes the disk.
///
/// It is open until it is held. While it is held, `run` lets the work pass a number of times. Other
/// calls that change the disk pass it, too, and wait only while background work is preferred.
class Gate {
 public:
  // Called by the work: it was scheduled, begins on this thread, ends, or is about to change the
  // disk.
  void scheduled();
  void begin();
  void end();
  void pass();

  // Called by the test.
  void hold();
  /// Opens the gate, and lets other threads change the disk only while there is no work.
  void prefer();
  void release();
  /// Lets work pass `times` times, and returns after that or when there is no work.
  void run(size_t times);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  bool preferred_ = false;
  /// Whether work waits at the gate.
  bool waits_ = false;
  size_t passes_ = 0;
  size_t pending_ = 0;
};

}  // namespace simdisk

#endif
