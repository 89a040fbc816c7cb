#include "onebit/engine/batch_sizes.h"

#include "onebit/base/error.h"

namespace onebit::engine {
namespace {

constexpr const char* kFix =
    "train_batch_size must equal train_micro_batch_size_per_gpu x gradient_accumulation_steps x "
    "ranks; give any two of the three";

// Lists the sizes that the recipe gives, and only these.
std::string describe(const BatchSizes& given, int64_t world) {
  std::string text;
  const std::pair<const char*, int64_t> keys[] = {
      {"train_batch_size", given.train},
      {"train_micro_batch_size_per_gpu", given.micro},
      {"gradient_accumulation_steps", given.accumulation}};
  for (const auto& [key, value] : keys) {
    if (value > 0) text += fmt::format("{} {}, ", key, value);
  }
  return text + fmt::format("{} rank{}", world, world == 1 ? "" : "s");
}

}  // namespace

int ranks_of(const BatchSizes& given) {
  const int64_t of_one_rank = given.micro * given.accumulation;
  const bool is_whole = given.train > 0 && of_one_rank > 0 && given.train % of_one_rank == 0;
  return is_whole ? static_cast<int>(given.train / of_one_rank) : 1;
}

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
          "{}: the batch does not divide: {}. {}", place, describe(given, world), kFix);
  return solved;
}

}  // namespace onebit::engine
