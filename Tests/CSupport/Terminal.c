#define _GNU_SOURCE

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "CTestSupport.h"

int open_terminal(int columns, int *end) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) return -1;
  const struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
  const char *name = NULL;
  if (grantpt(terminal) == 0 && unlockpt(terminal) == 0) name = ptsname(terminal);
  *end = name == NULL ? -1 : open(name, O_RDWR | O_NOCTTY);
  if (*end < 0 || fcntl(terminal, F_SETFD, FD_CLOEXEC) != 0 ||
      ioctl(*end, TIOCSWINSZ, &size) != 0) {
    if (*end >= 0) close(*end);
    close(terminal);
    return -1;
  }
  return terminal;
}
