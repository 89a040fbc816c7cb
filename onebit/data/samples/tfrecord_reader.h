// Reads the examples written by Google's create_pretraining_data.py: TFRecord files of
// tf.train.Example (github.com/google-research/bert, write_instance_to_example_files).
#pragma once

#include <memory>

#include "onebit/data/samples/padded_sample.h"

namespace onebit::samples {

// Opens a file, plain or compressed (corpus/byte_stream.h). Error: cannot be opened. Errors while
// reading: those of RecordStream and for_each_feature(); a feature missing, given twice or of
// another type.
std::unique_ptr<SampleReader> open_tfrecord(const Path& path);

// Parses the example of one record; `offset` is that of its first byte. Errors name sample.place.
void parse_bert_example(std::string_view record, uint64_t offset, PaddedSample& sample);

}  // namespace onebit::samples
