// How an update of the compressed phase moves the values after all buckets have arrived.
#include <algorithm>
#include <span>

#include "onebit/exchange/one_bit/compressed_optimizer.h"
#include "onebit/exchange/optim/optimizer.h"

namespace onebit::optim {
namespace {

// Writes the momentum of entries that woke in this update, which was not yet part of the exchange,
// into the momentum of a range.
void put_woken(std::span<const StillEntries::Woken> woken, Range range, View momentum) {
  for (const auto& [entries, values] : woken) {
    const int64_t begin = std::max(entries.begin, range.begin);
    const int64_t end = std::min(entries.end, range.end);
    if (begin >= end) continue;
    const ConstView all = ConstView::of(values.data(), {entries.elements()});
    copy(momentum.rows(begin - range.begin, end - range.begin),
         all.rows(begin - entries.begin, end - entries.begin));
  }
}

}  // namespace

std::vector<StillEntries::Woken> CompressedOptimizer::wake(const ParameterTable& table,
                                                           const StepInput& input,
                                                           std::vector<uint8_t> touched) {
  std::vector<StillEntries::Woken> woken = still_.wake(communicator_, std::move(touched),
                                                       {.variance = variance(),
                                                        .gradients = table.gradients(),
                                                        .block_scales = agreement_.block_scales(),
                                                        .beta1 = rule_.beta1(input),
                                                        .epsilon = options_.adam.epsilon,
                                                        .shares = topology_.shares(),
                                                        .sources = topology_.sources()});
  for (const auto& [range, momentum] : woken) {
    momentum_.adopt(range, ConstView::of(momentum.data(), {range.elements()}));
  }
  return woken;
}

View CompressedOptimizer::kept_momentum() const {
  if (alone()) return momentum_.owned();
  return local_ ? local_->momentum() : View();
}

void CompressedOptimizer::visit_momentum(Context& context, const OwnedMomentum::Visit& work) {
  const View kept = kept_momentum();
  if (exchange_ && plan_.exchanges) {
    return momentum_.visit_arrived(context, kept, buffers_[kNormalized], work);
  }
  for (const auto& [range, place] : topology_.shares()) {
    work(range, kept.rows(place, place + range.elements()));
  }
}

void CompressedOptimizer::move_values(Context& context, ParameterTable& table,
                                      const StepInput& input, const Agreed& agreed,
                                      StepReport& report) {
  const bool finite = agreed.finite;
  bool moves = finite;
  Rates rates{.learning_rate = finite ? input.learning_rate : 0,
              .groups = {input.groups.begin(), input.groups.end()}};
  if (local_ && plan_.exchanges) {
    // The exchange has taken the sums of the local updates, so their movement is made now, even if
    // this update's own is not.
    moves = finite || local_->count() > 0;
    rates = local_->return_to_common(table, rates);
    report.gathered_rate = rates.learning_rate;
  } else if (local_) {
    local_->leave_common(table, rates);
  }
  // A momentum that is kept is decoded even if it moves no value.
  if (!moves && !(local_ && plan_.exchanges)) return;
  if (moves) values_->begin_move(context, table, rule_, input);
  visit_momentum(context, [&](Range range, View momentum) {
    put_woken(agreed.woken, range, momentum);
    if (!moves) return;
    values_->move(context, table, rule_,
                  {.range = range,
                   .momentum = momentum,
                   .still = still_.bitmap(),
                   .learning_rate = rates.learning_rate,
                   .groups = rates.groups});
  });
  if (moves) gather_values(context, table);
}

void CompressedOptimizer::gather_values(Context& context, ParameterTable& table) const {
  if (!topology_.two_levels()) return;
  topology_.gather(context, table.values());
  refresh_compute_copy(context, table);
}

}  // namespace onebit::optim
