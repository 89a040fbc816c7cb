// The index of a TensorFlow checkpoint. Blocks have checksums that mutations break, so most inputs
// are only a part of a file: the first byte selects it, and the target adds the table around it.
#include "onebit/data/formats/tensor_bundle.h"

#include <cstdlib>
#include <string>

#include "tests/formats/bundle_index.h"
#include "tests/fuzz/read_tensors.h"

using namespace onebit;

namespace {

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
  const std::string index = data[0] == 'e'   ? formats::table_file(formats::with_restarts(rest), 0)
                            : data[0] == 'b' ? formats::table_file(rest, 0)
                            : data[0] == 's' ? formats::table_file(rest, 1)
                                             : std::string(rest);
  expect_error_at_most([&] {
    formats::read_tensors(std::make_shared<formats::TensorBundle>(files.write("m.index", index)));
  });
  return 0;
}
