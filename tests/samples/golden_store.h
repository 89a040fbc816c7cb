// The golden samples as a store.
#pragma once

#include <memory>

#include "onebit/data/samples/sample_store.h"
#include "tests/samples/golden_samples.h"

namespace onebit::samples {

inline std::shared_ptr<const SampleStore> make_golden_store(const Path& folder,
                                                            bool with_labels = true) {
  SampleWriter writer(folder, golden_vocabulary(), text::Casing::kUncased, false);
  for (Sample& sample : golden_samples()) {
    if (!with_labels) sample.next_sentence = kNoLabel;
    writer.add(sample, "golden");
  }
  writer.finish("golden", {"golden"});
  return std::make_shared<const SampleStore>(folder);
}

}  // namespace onebit::samples
