#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "CLarderSystem.h"

namespace {

// The largest number of connections that wait to be accepted.
constexpr int kBacklog = 64;

// A descriptor that is closed at the end of its scope, unless it was released.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ < 0) return;
    const int error = errno;
    close(value_);
    errno = error;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return value_; }

  int release() {
    const int value = value_;
    value_ = -1;
    return value;
  }

 private:
  int value_;
};

bool set_flags(int descriptor) {
  return fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 &&
         fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0;
}

bool ignore_broken_pipe(int descriptor) {
#if defined(SO_NOSIGPIPE)
  const int on = 1;
  return setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on)) == 0;
#else
  (void)descriptor;
  return true;
#endif
}

int make_socket() {
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  if (socket.get() < 0 || fcntl(socket.get(), F_SETFD, FD_CLOEXEC) != 0 ||
      !ignore_broken_pipe(socket.get())) {
    return -1;
  }
  return socket.release();
}

int open_directory(const char* path) { return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

// The address of a file in a directory. If its path is too long for one, the address leads over the
// directory's descriptor, where the system has such paths.
bool make_address(sockaddr_un& address, const char* directory, int descriptor, const char* name) {
  memset(&address, 0, sizeof(address));
  address.sun_family = AF_UNIX;
  const size_t limit = sizeof(address.sun_path);
  if (strlen(directory) + strlen(name) + 2 <= limit) {
    snprintf(address.sun_path, limit, "%s/%s", directory, name);
    return true;
  }
#if defined(__linux__)
  snprintf(address.sun_path, limit, "/proc/self/fd/%d/%s", descriptor, name);
  return true;
#else
  (void)descriptor;
  errno = ENAMETOOLONG;
  return false;
#endif
}

}  // namespace

int clarder_listen(const char* directory, const char* name, const char* temporary) noexcept {
  const Descriptor parent(open_directory(directory));
  if (parent.get() < 0) return -errno;
  sockaddr_un address;
  if (!make_address(address, directory, parent.get(), temporary)) return -errno;
  Descriptor socket(make_socket());
  if (socket.get() < 0) return -errno;
  // A killed process may have left it.
  if (unlinkat(parent.get(), temporary, 0) != 0 && errno != ENOENT) return -errno;
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return -errno;
  }
  // The mode is set before it listens: until then nobody can connect.
  if (fchmodat(parent.get(), temporary, S_IRUSR | S_IWUSR, 0) != 0 || !set_flags(socket.get()) ||
      listen(socket.get(), kBacklog) != 0 ||
      renameat(parent.get(), temporary, parent.get(), name) != 0) {
    const int error = errno;
    unlinkat(parent.get(), temporary, 0);
    return -error;
  }
  return socket.release();
}

int clarder_connect(const char* directory, const char* name, int seconds) noexcept {
  const Descriptor parent(open_directory(directory));
  if (parent.get() < 0) return -errno;
  sockaddr_un address;
  if (!make_address(address, directory, parent.get(), name)) return -errno;
  Descriptor socket(make_socket());
  if (socket.get() < 0) return -errno;
  timeval limit = {};
  limit.tv_sec = seconds;
  if (setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) != 0 ||
      setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) != 0 ||
      connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return -errno;
  }
  return socket.release();
}

int clarder_accept(int descriptor) noexcept {
  // Closed again with the scope, so that at least one descriptor stays free.
  Descriptor spare(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (spare.get() < 0) return -errno;
  Descriptor socket(accept(descriptor, nullptr, nullptr));
  if (socket.get() < 0) return -errno;
  if (!ignore_broken_pipe(socket.get()) || !set_flags(socket.get())) return -errno;
  return socket.release();
}

int clarder_peer(int descriptor, uint32_t* user, int32_t* process) noexcept {
#if defined(__linux__)
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return errno;
  *user = credentials.uid;
  *process = credentials.pid;
#else
  uid_t peer = 0;
  gid_t group = 0;
  if (getpeereid(descriptor, &peer, &group) != 0) return errno;
  *user = peer;
  pid_t id = 0;
#if defined(LOCAL_PEERPID)
  socklen_t size = sizeof(id);
  if (getsockopt(descriptor, SOL_LOCAL, LOCAL_PEERPID, &id, &size) != 0) return errno;
#endif
  *process = id;
#endif
  return 0;
}

int64_t clarder_send(int descriptor, const void* bytes, size_t count) noexcept {
#if defined(MSG_NOSIGNAL)
  constexpr int kFlags = MSG_NOSIGNAL;
#else
  constexpr int kFlags = 0;
#endif
  ssize_t sent;
  do {
    sent = send(descriptor, bytes, count, kFlags);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? -errno : sent;
}

int64_t clarder_receive(int descriptor, void* bytes, size_t count) noexcept {
  ssize_t received;
  do {
    received = recv(descriptor, bytes, count, 0);
  } while (received < 0 && errno == EINTR);
  return received < 0 ? -errno : received;
}
