#include "onebit/ground/metrics/label_counts.h"

namespace onebit::metrics {
namespace {

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double LabelCounts::precision() const {
  return share(hits, hits + false_alarms);
}

double LabelCounts::recall() const {
  return share(hits, hits + misses);
}

double LabelCounts::f1() const {
  return share(2 * hits, 2 * hits + false_alarms + misses);
}

double f1_macro(std::span<const LabelCounts> labels) {
  double sum = 0;
  for (const LabelCounts& one : labels) sum += one.f1();
  return labels.empty() ? 0 : sum / static_cast<double>(labels.size());
}

double f1_micro(std::span<const LabelCounts> labels) {
  LabelCounts all;
  for (const LabelCounts& one : labels) {
    all.hits += one.hits;
    all.false_alarms += one.false_alarms;
    all.misses += one.misses;
  }
  return all.f1();
}

double f1_weighted(std::span<const LabelCounts> labels) {
  double sum = 0;
  int64_t support = 0;
  for (const LabelCounts& one : labels) {
    sum += one.f1() * static_cast<double>(one.support());
    support += one.support();
  }
  return support == 0 ? 0 : sum / static_cast<double>(support);
}

}  // namespace onebit::metrics
