// A TensorSource under other names: carries out a NamePlan while tensors are read.
#pragma once

#include <memory>
#include <vector>

#include "onebit/data/formats/name_map.h"
#include "onebit/data/formats/tensor_source.h"

namespace onebit::formats {

class RenamedSource : public TensorSource {
 public:
  // Error: tied tensors that differ (an untied decoder, which this BERT does not have).
  RenamedSource(std::shared_ptr<const TensorSource> source, NamePlan plan);

  const std::vector<NamePlan::Skipped>& skipped() const { return skipped_; }
  // The prefix of the plan, or "" if none was removed.
  const std::string& prefix_report() const { return prefix_report_; }

 private:
  std::span<const std::byte> readable_bytes(size_t index,
                                            std::vector<std::byte>& scratch) const override;

  std::shared_ptr<const TensorSource> source_;
  std::vector<MapStep> steps_;
  std::vector<NamePlan::Skipped> skipped_;
  std::string prefix_report_;
};

// The source under our names, with its naming detected. `naming` (optional) receives it.
std::shared_ptr<RenamedSource> under_our_names(std::shared_ptr<const TensorSource> source,
                                               Naming* naming = nullptr);

}  // namespace onebit::formats
