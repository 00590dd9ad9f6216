#define _GNU_SOURCE
#include "CTestSupport.h"

#if defined(__linux__)

int close_descriptors(posix_spawn_file_actions_t *actions, int first) {
  return posix_spawn_file_actions_addclosefrom_np(actions, first);
}

#endif
