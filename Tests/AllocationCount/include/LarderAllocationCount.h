#ifndef LARDER_ALLOCATION_COUNT_H
#define LARDER_ALLOCATION_COUNT_H

#include <stdint.h>

/// How often this process has asked for memory so far; -1 where that cannot be counted.
int64_t larder_allocation_count(void);

#endif
