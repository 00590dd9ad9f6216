// The clocks. Swift could call them, but which module `timespec` belongs to depends on the order in
// which the compiler reads the files.

#include <time.h>

#include "CLarderSystem.h"

#if defined(__APPLE__)
#define CLARDER_UPTIME CLOCK_MONOTONIC_RAW_APPROX
#define CLARDER_DATE CLOCK_REALTIME
#else
#define CLARDER_UPTIME CLOCK_MONOTONIC_COARSE
#define CLARDER_DATE CLOCK_REALTIME_COARSE
#endif

int64_t clarder_continuous_nanoseconds(void) noexcept {
#ifdef __APPLE__
  const clockid_t clock = CLOCK_MONOTONIC_RAW;
#else
  const clockid_t clock = CLOCK_BOOTTIME;
#endif
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<int64_t>(time.tv_sec) * 1000000000 + time.tv_nsec;
}

int64_t clarder_uptime_seconds(void) noexcept {
  timespec time{};
  clock_gettime(CLARDER_UPTIME, &time);
  return time.tv_sec;
}

double clarder_coarse_date(void) noexcept {
  // From 1970 to 2001.
  const int64_t reference = 978307200;
  timespec time{};
  clock_gettime(CLARDER_DATE, &time);
  return static_cast<double>(time.tv_sec - reference) + static_cast<double>(time.tv_nsec) / 1e9;
}
