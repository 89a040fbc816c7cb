// Writes a sample store in a temporary folder and renames it when it is complete.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onebit/data/corpus/store.h"
#include "onebit/data/samples/sample.h"
#include "onebit/data/samples/sample_store.h"
#include "onebit/data/text/casing.h"
#include "onebit/ground/base/partial_file.h"

namespace onebit::samples {

class SampleWriter {
 public:
  // Creates the folder `<output>.partial` (base/partial_file.h). Errors: `output` is a store and
  // `overwrite` is false, or is anything else but an empty folder; another process is writing it.
  SampleWriter(const Path& output, const text::Vocabulary& vocabulary, text::Casing casing,
               bool overwrite);
  // Removes the folder unless finish() has completed.
  ~SampleWriter();
  SampleWriter(const SampleWriter&) = delete;
  SampleWriter& operator=(const SampleWriter&) = delete;

  // Adds a sample from SampleChecker; errors name `place`. Error: the sample has a label and the
  // first one had none, or vice versa.
  void add(const Sample& sample, const std::string& place);
  uint64_t samples() const { return manifest_.samples; }
  // Completes the manifest, syncs and renames. Error: no sample at all.
  SampleManifest finish(const std::string& format, const std::vector<std::string>& sources);

 private:
  // The files in the order of the manifest.
  struct Files {
    explicit Files(const Path& folder);

    corpus::StoreFileWriter tokens, sequences, pairs, masked, positions, targets;
  };

  void write_ids(corpus::StoreFileWriter& file, const std::vector<int32_t>& ids);

  PartialFolder folder_;
  SampleManifest manifest_;
  int32_t mask_id_;
  std::optional<Files> files_;
  std::vector<uint16_t> short_numbers_;
};

}  // namespace onebit::samples
