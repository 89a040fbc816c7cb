#include "onebit/exchange/engine/batch_sizes.h"

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/wording.h"

namespace onebit::engine {
namespace {

constexpr const char* kFix =
    "train_batch_size must equal train_micro_batch_size_per_gpu x gradient_accumulation_steps x "
    "ranks; give any two of the three";
constexpr const char* kFixOfRemainder =
    ", or set run.uneven_batches to true to distribute the remainder unevenly";
constexpr const char* kFixOfUneven =
    "With run.uneven_batches, train_batch_size may be at most train_micro_batch_size_per_gpu x "
    "gradient_accumulation_steps x ranks, and must have a sample for every rank and every "
    "micro-step; leave gradient_accumulation_steps out, or use fewer ranks";

int64_t divided_upwards(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Lists only the sizes that the recipe gives.
std::string describe(const BatchSizes& requested, int64_t world) {
  std::string text;
  const std::pair<const char*, int64_t> keys[] = {
      {"train_batch_size", requested.train},
      {"train_micro_batch_size_per_gpu", requested.micro},
      {"gradient_accumulation_steps", requested.accumulation}};
  for (const auto& [key, value] : keys) {
    if (value > 0) text += fmt::format("{} {}, ", key, value);
  }
  return text + counted(world, "rank");
}

BatchSizes solve_uneven(const BatchSizes& requested, int64_t world, const std::string& place) {
  BatchSizes solved = requested;
  if (solved.accumulation == 0) {
    solved.accumulation =
        requested.micro > 0 ? divided_upwards(requested.train, requested.micro * world) : 1;
  }
  solved.micro = divided_upwards(requested.train, solved.accumulation * world);
  const bool fits = requested.micro == 0 || solved.micro <= requested.micro;
  const bool each_has_some =
      requested.train >= world && requested.train > (solved.accumulation - 1) * world;
  require(fits && each_has_some, "{}: the batch cannot be distributed over the ranks: {}. {}",
          place, describe(requested, world), kFixOfUneven);
  return solved;
}

}  // namespace

int ranks_of(const BatchSizes& requested) {
  const int64_t of_one_rank = requested.micro * requested.accumulation;
  if (requested.train == 0 || of_one_rank == 0) return 1;
  if (requested.uneven) return static_cast<int>(divided_upwards(requested.train, of_one_rank));
  return requested.train % of_one_rank == 0 ? static_cast<int>(requested.train / of_one_rank) : 1;
}

BatchSizes solve_batch_sizes(BatchSizes requested, int world_size, const std::string& place) {
  const int64_t world = world_size;
  for (const int64_t value : {requested.train, requested.micro, requested.accumulation}) {
    require(value >= 0, "{}: a batch size is {}; batch sizes must be positive. {}", place, value,
            kFix);
  }
  BatchSizes solved = requested;
  require(requested.train > 0 || requested.micro > 0,
          "{}: neither train_batch_size nor train_micro_batch_size_per_gpu is given. {}", place,
          kFix);
  if (requested.uneven && requested.train > 0) return solve_uneven(requested, world, place);
  require(
      requested.train == 0 || requested.train >= world,
      "{}: some ranks would have no sequence in a step: {}. Raise train_batch_size, or use fewer "
      "ranks",
      place, describe(requested, world));
  if (solved.accumulation == 0 && (requested.train == 0 || requested.micro == 0))
    solved.accumulation = 1;
  if (solved.train == 0) solved.train = solved.micro * solved.accumulation * world;
  if (solved.accumulation == 0) solved.accumulation = solved.train / (solved.micro * world);
  if (solved.micro == 0) solved.micro = solved.train / (solved.accumulation * world);
  require(solved.micro > 0 && solved.accumulation > 0 && solved.are_equal(world_size),
          "{}: the batch does not divide evenly: {}. {}{}", place, describe(requested, world), kFix,
          kFixOfRemainder);
  return solved;
}

std::string describe_shares(const BatchSizes& solved, int world_size) {
  if (solved.are_equal(world_size)) {
    return fmt::format("{} per rank x {} x {}", solved.micro,
                       counted(solved.accumulation, "micro-step"), counted(world_size, "rank"));
  }
  constexpr int kMaxListed = 8;
  const int64_t less = solved.train / world_size, more = solved.train % world_size;
  std::string shares;
  for (int rank = 0; rank < world_size && world_size <= kMaxListed; ++rank) {
    shares += fmt::format("{}{}", rank == 0 ? "" : " + ", rank < more ? less + 1 : less);
  }
  // All ranks may have equal numbers of samples, in micro-batches that differ.
  if (world_size > kMaxListed) {
    shares = more == 0 ? fmt::format("{} x {}", world_size, less)
                       : fmt::format("{} x {} + {} x {}", more, less + 1, world_size - more, less);
  }
  return fmt::format("{} over {}, in {} of at most {} per rank", shares,
                     counted(world_size, "rank"), counted(solved.accumulation, "micro-step"),
                     solved.micro);
}

}  // namespace onebit::engine
