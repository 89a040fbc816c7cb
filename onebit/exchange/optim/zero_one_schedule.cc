#include "onebit/exchange/optim/zero_one_schedule.h"

#include <algorithm>

namespace onebit::optim {
namespace {

int64_t doubled(int64_t interval, int64_t limit) {
  return interval <= limit / 2 ? 2 * interval : limit;
}

// The number of multiples of `interval` among after + 1 to last.
int64_t multiples(int64_t interval, int64_t after, int64_t last) {
  return last / interval - after / interval;
}

}  // namespace

ZeroOneSchedule::ZeroOneSchedule(const ZeroOneOptions& options, int64_t updates)
    : options_(options) {
  while (updates_ < updates) advance();
}

ZeroOneSchedule::Kind ZeroOneSchedule::next() const {
  const int64_t update = updates_ + 1;
  if (update <= options_.variance_freeze) {
    if (variance_interval_ == 1) return Kind::kDense;
    return update % variance_interval_ == 0 ? Kind::kRefresh : Kind::kOneBit;
  }
  const bool exchanges = update % local_interval_ == 0 || update == options_.last_update;
  return exchanges ? Kind::kSynchronize : Kind::kLocal;
}

void ZeroOneSchedule::advance() {
  const Kind kind = next();
  ++updates_;
  if (kind == Kind::kDense || kind == Kind::kRefresh) {
    if (++dense_in_interval_ < options_.variance_scaler) return;
    dense_in_interval_ = 0;
    variance_interval_ *= 2;
  } else if (kind == Kind::kSynchronize || kind == Kind::kLocal) {
    if (++updates_in_interval_ < options_.local_scaler) return;
    updates_in_interval_ = 0;
    local_interval_ = doubled(local_interval_, options_.local_limit);
  }
}

ZeroOneCounts count_exchanges(const ZeroOneOptions& options, int64_t updates) {
  ZeroOneCounts counts;
  const int64_t freeze = std::min(updates, options.variance_freeze);
  int64_t done = 0;
  for (int64_t interval = 1; done < freeze; interval = doubled(interval, freeze)) {
    const int64_t left = multiples(interval, done, freeze);
    const bool ends_here = options.variance_scaler >= left;
    const int64_t end = ends_here ? freeze : (done / interval + options.variance_scaler) * interval;
    counts.dense += multiples(interval, done, end);
    if (interval > 1) counts.one_bit += end - done;
    done = end;
  }
  for (int64_t interval = 1; done < updates; interval = doubled(interval, options.local_limit)) {
    const bool is_longest = interval == options.local_limit;
    const int64_t end =
        is_longest || options.local_scaler > updates - done ? updates : done + options.local_scaler;
    int64_t synchronized = multiples(interval, done, end);
    const int64_t last = options.last_update;
    if (last > done && last <= end && last % interval != 0) ++synchronized;
    counts.one_bit += synchronized;
    counts.nothing += end - done - synchronized;
    done = end;
  }
  return counts;
}

int64_t longest_interval(const ZeroOneOptions& options, int64_t updates) {
  const int64_t before_last = updates - options.variance_freeze - 1;
  int64_t interval = 1;
  for (int64_t times = before_last / options.local_scaler;
       times > 0 && interval < options.local_limit; --times) {
    interval = doubled(interval, options.local_limit);
  }
  return interval;
}

}  // namespace onebit::optim
