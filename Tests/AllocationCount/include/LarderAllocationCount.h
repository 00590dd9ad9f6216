#ifndef LARDER_ALLOCATION_COUNT_H
#define LARDER_ALLOCATION_COUNT_H

#include <stdint.h>

/// How often this process has asked for memory so far; -1 where that cannot be counted.
int64_t larder_allocation_count(void);

/// Returns the memory that this process has freed to the system.
void larder_return_free_memory(void);

#endif
