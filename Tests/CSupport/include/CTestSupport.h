// What tests need from C. MutexAnnotation.c has nothing to call.

#pragma once

#include <spawn.h>
#include <stddef.h>

/// The bytes that this process has allocated and not freed.
///
/// The allocator keeps free memory between them, so the system has given it more.
size_t allocated_bytes(void);

/// Makes a process that is spawned with `actions` close all its descriptors from `first` on.
///
/// Returns 0, or the number of an error. Swift's Glibc module does not declare the function that
/// this calls.
int close_descriptors(posix_spawn_file_actions_t *actions, int first);

/// Opens a terminal without a screen, with lines of `columns` characters.
///
/// Returns the descriptor that reads what is written to `*end`, or -1. Swift's Glibc module does
/// not declare the functions that this calls.
int open_terminal(int columns, int *end);

/// Makes the calling thread one that interrupts no other thread when it is woken.
///
/// Swift's Glibc module does not declare what this calls.
void become_batch_thread(void);
