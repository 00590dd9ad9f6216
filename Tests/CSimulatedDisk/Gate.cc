#include "Gate.h"

#include <chrono>

namespace simdisk {

namespace {

thread_local bool is_background = false;

/// The longest time to hold work, after which a thread probably waits for it.
constexpr std::chrono::seconds kPatience(60);

}  // namespace

void Gate::scheduled() {
  std::lock_guard<std::mutex> guard(mutex_);
  ++pending_;
}

void Gate::begin() {
  is_background = true;
  pass();
}

void Gate::end() {
  std::lock_guard<std::mutex> guard(mutex_);
  --pending_;
  changed_.notify_all();
}

void Gate::pass() {
  std::unique_lock<std::mutex> guard(mutex_);
  if (!is_background) {
    auto may_pass = [this] { return !preferred_ || pending_ == 0; };
    if (!changed_.wait_for(guard, kPatience, may_pass)) preferred_ = false;
    return;
  }
  waits_ = true;
  changed_.notify_all();
  auto may_pass = [this] { return !held_ || passes_ > 0; };
  if (!changed_.wait_for(guard, kPatience, may_pass)) held_ = false;
  waits_ = false;
  if (held_) --passes_;
}

void Gate::hold() {
  std::lock_guard<std::mutex> guard(mutex_);
  held_ = true;
  preferred_ = false;
}

void Gate::prefer() {
  std::lock_guard<std::mutex> guard(mutex_);
  held_ = false;
  preferred_ = true;
  changed_.notify_all();
}

void Gate::release() {
  std::lock_guard<std::mutex> guard(mutex_);
  held_ = false;
  preferred_ = false;
  changed_.notify_all();
}

void Gate::run(size_t times) {
  std::unique_lock<std::mutex> guard(mutex_);
  passes_ = times;
  changed_.notify_all();
  changed_.wait(guard, [this] { return pending_ == 0 || (held_ && passes_ == 0 && waits_); });
  passes_ = 0;
}

}  // namespace simdisk
