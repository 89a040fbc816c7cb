#include "onebit/engine/config.h"

namespace onebit::engine {
namespace {

constexpr const char* kFix =
    "train_batch_size must equal train_micro_batch_size_per_gpu x gradient_accumulation_steps x "
    "ranks; give any two of the three";

}  // namespace

BatchSizes solve_batch_sizes(BatchSizes given, int world_size, const std::string& place) {
  const int64_t world = world_size;
  for (const int64_t value : {given.train, given.micro, given.accumulation}) {
    require(value >= 0, "{}: a batch size is {}; batch sizes must be positive. {}", place, value,
            kFix);
  }
  BatchSizes solved = given;
  require(given.train > 0 || given.micro > 0,
          "{}: neither train_batch_size nor train_micro_batch_size_per_gpu is given. {}", place,
          kFix);
  if (solved.accumulation == 0 && (given.train == 0 || given.micro == 0)) solved.accumulation = 1;
  if (solved.train == 0) solved.train = solved.micro * solved.accumulation * world;
  if (solved.accumulation == 0) solved.accumulation = solved.train / (solved.micro * world);
  if (solved.micro == 0) solved.micro = solved.train / (solved.accumulation * world);
  require(solved.micro > 0 && solved.accumulation > 0 &&
              solved.train == solved.micro * solved.accumulation * world,
          "{}: the batch does not divide: train_batch_size {}, micro-batch {}, accumulation {}, "
          "{} rank{}. {}",
          place, solved.train, solved.micro, solved.accumulation, world, world == 1 ? "" : "s",
          kFix);
  return solved;
}

}  // namespace onebit::engine
