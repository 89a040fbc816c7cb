// `onebit prepare --from hdf5|tfrecord`: converts third-party examples to a sample store.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onebit/data/samples/sample_files.h"
#include "onebit/data/text/casing.h"

namespace onebit::cli {

struct SampleArguments {
  std::vector<std::string> inputs;
  samples::SampleFormat format = samples::SampleFormat::kHdf5;
  std::string output;
  std::string vocabulary;  // value of --vocab
  std::optional<text::Casing> casing;
  bool overwrite = false;
};

// Runs the command; returns the exit status.
int prepare_samples(const SampleArguments& given);

}  // namespace onebit::cli
