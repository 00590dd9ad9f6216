// Nothing to call: see MutexAnnotation.c.
