#include "RawRedis.h"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

struct raw_redis {
  redisContext* context;
};

namespace {

using Reply = std::unique_ptr<redisReply, void (*)(void*)>;

[[noreturn]] void fail(const char* message) {
  std::fprintf(stderr, "RawRedis: %s\n", message);
  std::abort();
}

Reply next_reply(raw_redis* redis) {
  void* reply = nullptr;
  if (redisGetReply(redis->context, &reply) != REDIS_OK) fail(redis->context->errstr);
  Reply owned(static_cast<redisReply*>(reply), freeReplyObject);
  if (owned->type == REDIS_REPLY_ERROR) fail(owned->str);
  return owned;
}

// Sends a command for each key, `depth` of them at a time; counts the replies that are right.
template <typename Append, typename IsRight>
size_t run(raw_redis* redis, const raw_redis_plan& plan, Append append, IsRight is_right) {
  size_t right = 0;
  for (size_t done = 0; done < plan.count;) {
    const size_t sent = std::min(plan.depth, plan.count - done);
    for (size_t i = 0; i < sent; i++) {
      append(plan.prefix + std::to_string(plan.first + done + i));
    }
    for (size_t i = 0; i < sent; i++) {
      if (is_right(*next_reply(redis))) right++;
    }
    done += sent;
  }
  return right;
}

}  // namespace

raw_redis* raw_redis_open(const char* path) {
  redisContext* context = redisConnectUnix(path);
  if (context == nullptr) fail("out of memory");
  if (context->err == 0) return new raw_redis{context};
  redisFree(context);
  return nullptr;
}

void raw_redis_close(raw_redis* redis) {
  redisFree(redis->context);
  delete redis;
}

size_t raw_redis_set(raw_redis* redis, raw_redis_plan plan) {
  const std::string value(plan.value_bytes, 'v');
  return run(
      redis, plan,
      [&](const std::string& key) {
        redisAppendCommand(redis->context, "SET %b %b PX 3600000", key.data(), key.size(),
                           value.data(), value.size());
      },
      [](const redisReply& reply) { return reply.type == REDIS_REPLY_STATUS; });
}

size_t raw_redis_get(raw_redis* redis, raw_redis_plan plan) {
  return run(
      redis, plan,
      [&](const std::string& key) {
        redisAppendCommand(redis->context, "GET %b", key.data(), key.size());
      },
      [&](const redisReply& reply) {
        return reply.type == REDIS_REPLY_STRING && reply.len == plan.value_bytes;
      });
}

size_t raw_redis_get_part(raw_redis* redis, raw_redis_plan plan) {
  return run(
      redis, plan,
      [&](const std::string& key) {
        redisAppendCommand(redis->context, "GETRANGE %b 24 31", key.data(), key.size());
      },
      [](const redisReply& reply) { return reply.type == REDIS_REPLY_STRING && reply.len == 8; });
}
