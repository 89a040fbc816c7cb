// Reads the protocol-buffer wire format field by field: enough for TensorFlow's small messages
// (checkpoints, Example). https://protobuf.dev/programming-guides/encoding
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "onebit/ground/base/byte_reader.h"

namespace onebit {

struct ProtoField {
  uint64_t number = 0;
  uint64_t value = 0;      // of a varint or a fixed-size number
  std::string_view bytes;  // of a string or an embedded message
  uint64_t offset = 0;     // of `bytes` in the file
};

class ProtoReader {
 public:
  ProtoReader(std::string_view message, const std::string& place, uint64_t offset)
      : reader_(std::as_bytes(std::span(message)), place, offset) {}

  // Reads the next field. Returns false at the end. Error: damaged data.
  bool next(ProtoField& field) {
    if (reader_.at_end()) return false;
    const uint64_t key = reader_.varint();
    field = {key >> 3, 0, {}, 0};
    switch (key & 7u) {
      case 0:
        field.value = reader_.varint();
        break;
      case 1:
        field.value = reader_.number<uint64_t>();
        break;
      case 5:
        field.value = reader_.number<uint32_t>();
        break;
      case 2: {
        const uint64_t size = reader_.varint();
        field.offset = reader_.offset();
        field.bytes = reader_.take(size);
        break;
      }
      default:
        reader_.refuse("damaged message");
    }
    return true;
  }

 private:
  ByteReader reader_;
};

}  // namespace onebit
