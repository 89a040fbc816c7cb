// Reads the examples written by Google's create_pretraining_data.py: TFRecord files of
// tf.train.Example (github.com/google-research/bert, write_instance_to_example_files).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/data/corpus/byte_stream.h"
#include "onebit/data/samples/sample.h"

namespace onebit::samples {

// Reads TensorFlow's TFRecord files: repeatedly a length, its checksum, that many bytes, their
// checksum. https://github.com/tensorflow/tensorflow (tensorflow/core/lib/io/record_writer.h)
class RecordStream {
 public:
  // Longer records are refused unread: an example of 65536 tokens has about a megabyte.
  static constexpr uint64_t kMaxRecordBytes = uint64_t{64} << 20;

  // Errors name the file as `name`.
  RecordStream(std::unique_ptr<corpus::ByteStream> bytes, std::string name);

  // Reads the next record and verifies its checksums, and returns false at the end. A file
  // truncated between two records is a valid shorter file. Errors, with number and offset of the
  // record: a checksum that differs, truncated, too long.
  bool read(std::string& record);

  uint64_t number() const { return number_; }  // of the last record read, from 1
  uint64_t offset() const { return offset_; }  // of its first byte in the uncompressed file
  uint64_t content_offset() const { return offset_ + kHeaderBytes; }
  // "a.tfrecord: record 3 (byte 2178)"
  std::string place() const;
  uint64_t consumed_bytes() const { return bytes_->consumed_bytes(); }

 private:
  static constexpr size_t kHeaderBytes = 12, kTrailerBytes = 4;

  // Reads up to `size_bytes` bytes, fewer only at the end.
  size_t read_bytes(char* to, size_t size_bytes);

  std::unique_ptr<corpus::ByteStream> bytes_;
  std::string name_;
  uint64_t number_ = 0, offset_ = 0, next_offset_ = 0;
};

// Parses a tf.train.Example: names with lists of numbers.
// https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/example/example.proto

// The numbers of a feature. At most one of the lists is not empty.
struct Feature {
  enum class Kind { kEmpty, kBytes, kFloats, kIntegers };

  Kind kind = Kind::kEmpty;
  std::string_view name;
  std::vector<int64_t> integers;
  std::vector<float> floats;
};

// Calls `found` for each feature of the serialized Example in order. Numbers are read only for
// names that `wanted` accepts. Errors name `place` and count bytes from `offset`, the first byte's:
// not an Example, a damaged message, more than `most_numbers` numbers in a list. The caller has to
// detect a name that occurs twice.
struct ExampleLimits {
  size_t most_numbers = size_t{1} << 20;
};
void for_each_feature(std::string_view example, const std::string& place, uint64_t offset,
                      const ExampleLimits& limits,
                      const std::function<bool(std::string_view)>& wanted,
                      const std::function<void(Feature&)>& found);

// Opens a file, plain or compressed (corpus/byte_stream.h). Error: cannot be opened. Errors while
// reading: as for RecordStream and for_each_feature(), and a feature missing, given twice or of
// another type.
std::unique_ptr<SampleReader> open_tfrecord(const Path& path);

// Parses the example of one record. `offset` is its first byte's. Errors name sample.place.
void parse_bert_example(std::string_view record, uint64_t offset, PaddedSample& sample);

}  // namespace onebit::samples
