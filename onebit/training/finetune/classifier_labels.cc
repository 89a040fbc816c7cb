#include "onebit/training/finetune/classifier_labels.h"

#include <algorithm>

#include "onebit/ground/base/error.h"

namespace onebit::finetune {
namespace {

std::vector<std::string> sorted(std::vector<std::string> labels) {
  std::sort(labels.begin(), labels.end());
  return labels;
}

}  // namespace

void check_given_labels(const std::vector<std::string>& labels, size_t least,
                        const std::string& place, const std::string& key) {
  const std::vector<std::string> in_order = sorted(labels);
  const auto twice = std::adjacent_find(in_order.begin(), in_order.end());
  require(twice == in_order.end(), "{}: key `{}` contains \"{}\" twice", place, key,
          twice == in_order.end() ? "" : *twice);
  require(labels.size() >= least,
          "{}: key `{}` contains one label, but a classifier chooses between at least two: add the "
          "others, or leave the key out",
          place, key);
}

LabelChoice choose_labels(std::vector<std::string> labels, bool order_is_given,
                          const training::ClassifierDescription& checkpoint, bool has_classifier) {
  if (!has_classifier) return {.labels = std::move(labels), .decision = ""};
  const bool fits =
      order_is_given ? checkpoint.labels == labels : sorted(checkpoint.labels) == sorted(labels);
  if (!fits) {
    return {.labels = std::move(labels),
            .decision = "the model's classifier has other labels and is replaced"};
  }
  return {.labels = checkpoint.labels,
          .keeps_head = true,
          .decision = "the model's classifier has these labels and is kept and trained further"};
}

}  // namespace onebit::finetune
