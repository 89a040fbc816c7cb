// Reads TensorFlow's TFRecord files: repeatedly a length, its checksum, that many bytes, their
// checksum. https://github.com/tensorflow/tensorflow (tensorflow/core/lib/io/record_writer.h)
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "onebit/data/corpus/byte_stream.h"

namespace onebit::samples {

class RecordStream {
 public:
  // Longer records are refused unread: an example of 65536 tokens has about a megabyte.
  static constexpr uint64_t kMaxRecordBytes = uint64_t{64} << 20;

  // Errors name the file as `name`.
  RecordStream(std::unique_ptr<corpus::ByteStream> bytes, std::string name);

  // Reads the next record and verifies its checksums; returns false at the end. A file truncated
  // between two records is a valid shorter file. Errors, with number and offset of the record: a
  // checksum that differs, truncated, too long.
  bool read(std::string& record);

  uint64_t number() const { return number_; }  // of the last record read, from 1
  uint64_t offset() const { return offset_; }  // of its first byte in the uncompressed file
  uint64_t content_offset() const { return offset_ + kHeaderBytes; }
  // "a.tfrecord: record 3 (byte 2178)"
  std::string place() const;
  uint64_t consumed_bytes() const { return bytes_->consumed_bytes(); }

 private:
  static constexpr size_t kHeaderBytes = 12, kTrailerBytes = 4;

  // Reads up to `size_bytes` bytes; fewer only at the end.
  size_t read_bytes(char* to, size_t size_bytes);

  std::unique_ptr<corpus::ByteStream> bytes_;
  std::string name_;
  uint64_t number_ = 0, offset_ = 0, next_offset_ = 0;
};

}  // namespace onebit::samples
