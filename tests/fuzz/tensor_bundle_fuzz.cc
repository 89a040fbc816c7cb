// The index of a TensorFlow checkpoint. Blocks have checksums that mutations break, so most inputs
// are only a part of a file: the first byte selects it, and the target adds the table around it.
#include "onebit/formats/tensor_bundle.h"

#include <array>
#include <cstring>
#include <string>

#include "onebit/base/crc32c.h"
#include "tests/fuzz/read_tensors.h"

using namespace onebit;

namespace {

void append_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}

template <typename T>
void append_number(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Appends a block with its trailer and returns its handle.
std::string append_block(std::string& file, std::string_view content, char type) {
  std::string handle;
  append_varint(handle, file.size());
  append_varint(handle, content.size());
  std::string covered(content);
  covered += type;
  file += covered;
  append_number(file, mask_crc32c(crc32c(covered.data(), covered.size())));
  return handle;
}

// A table of one data block, `content`, stored (0) or compressed (1).
std::string table_of(std::string_view content, char type) {
  std::string file;
  const std::string data = append_block(file, content, type);
  std::string index;
  append_varint(index, 0);
  append_varint(index, 1);
  append_varint(index, data.size());
  index += "z" + data;
  append_number(index, uint32_t{0});
  append_number(index, uint32_t{1});
  std::string footer = std::string(2, '\0') + append_block(file, index, 0);
  footer.resize(40, '\0');
  append_number(footer, uint64_t{0xdb4775248b80fb57u});
  return file + footer;
}

// Without a proper end of the restart points every block would be refused.
std::string with_restarts(std::string_view entries) {
  std::string block(entries);
  append_number(block, uint32_t{0});
  append_number(block, uint32_t{1});
  return block;
}

// The files of the checkpoint, one after the other in the same folder.
class BundleFiles {
 public:
  BundleFiles() {
    std::string pattern = "/dev/shm/onebit-fuzz-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    folder_ = pattern;
    write("m.data-00000-of-00001", std::string(256, '\1'));
  }
  ~BundleFiles() { std::filesystem::remove_all(folder_); }

  Path write(const char* name, const std::string& content) {
    FileWriter writer(folder_ / name);
    writer.write(content);
    writer.finish();
    return folder_ / name;
  }

 private:
  Path folder_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static BundleFiles files;
  if (size == 0) return -1;
  const std::string_view rest = text_of(data, size).substr(1);
  const std::string index = data[0] == 'e'   ? table_of(with_restarts(rest), 0)
                            : data[0] == 'b' ? table_of(rest, 0)
                            : data[0] == 's' ? table_of(rest, 1)
                                             : std::string(rest);
  expect_error_at_most([&] {
    formats::read_tensors(std::make_shared<formats::TensorBundle>(files.write("m.index", index)));
  });
  return 0;
}
