#include <pthread.h>

#include "CLarderSystem.h"

namespace {

struct Start {
  void (*body)(void*);
  void* context;
};

void* run(void* start) {
  const Start what = *static_cast<Start*>(start);
  delete static_cast<Start*>(start);
#if defined(__linux__)
  pthread_setname_np(pthread_self(), "larder");
#elif defined(__APPLE__)
  pthread_setname_np("larder");
#endif
  what.body(what.context);
  return nullptr;
}

}  // namespace

// The types of pthread_create differ between the systems' Swift modules.
bool clarder_start_thread(void (*body)(void*), void* context) noexcept {
  auto* start = new Start{body, context};
  pthread_t thread;
  if (pthread_create(&thread, nullptr, run, start) != 0) {
    delete start;
    return false;
  }
  pthread_detach(thread);
  return true;
}
