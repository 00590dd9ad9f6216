#define _GNU_SOURCE
#include "CTestSupport.h"

#if defined(__linux__)

#include <sched.h>

void become_batch_thread(void) {
  const struct sched_param parameters = {0};
  // It fails only for the superuser's policies, which this is not.
  sched_setscheduler(0, SCHED_BATCH, &parameters);
}

#endif
