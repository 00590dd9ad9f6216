#include "Internal.h"

leveldb::Status clarder::make_options(const clarder_options& options, clarder_db* database,
                                      leveldb::Options* result) {
  if (options.env != nullptr) result->env = reinterpret_cast<leveldb::Env*>(options.env);
  // Without a logger, LevelDB would make a file LOG in the directory and rename the one before it,
  // even when it then refuses to open.
  leveldb::Logger* logger = nullptr;
  leveldb::Status status = result->env->NewLogger(options.info_log_path, &logger);
  if (!status.ok()) return status;
  database->logger.reset(logger);
  database->cache.reset(leveldb::NewLRUCache(options.block_cache_bytes));
  if (options.filter_bits_per_key > 0) {
    database->filter.reset(leveldb::NewBloomFilterPolicy(options.filter_bits_per_key));
  }

  result->env = make_env(database, result->env, options.hold_compactions);
  result->create_if_missing = options.create_if_missing;
  // Off, compaction would give damaged entries a new and valid checksum.
  result->paranoid_checks = true;
  result->info_log = database->logger.get();
  result->write_buffer_size = options.write_buffer_bytes;
  result->max_open_files = options.max_open_files;
  result->block_cache = database->cache.get();
  result->block_size = options.block_bytes;
  result->max_file_size = options.max_file_bytes;
  result->compression =
      options.compression ? leveldb::kSnappyCompression : leveldb::kNoCompression;
  result->reuse_logs = options.reuse_logs;
  result->filter_policy = database->filter.get();
  return status;
}
