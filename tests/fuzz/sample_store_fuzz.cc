// A sample store with arbitrary bytes in a file: the first byte selects the file that the rest
// replaces.
#include "onebit/data/samples/sample_store.h"

#include <cstdlib>
#include <string>

#include "tests/fuzz/fuzz_input.h"

using namespace onebit;

namespace {

constexpr const char* kFiles[] = {
    corpus::kManifestName, samples::kTokensName,    samples::kSequencesName, samples::kPairsName,
    samples::kMaskedName,  samples::kPositionsName, samples::kTargetsName};

// A sound store in memory, the files of which are put back after each input.
class SoundStore {
 public:
  SoundStore() {
    std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"};
    samples::SampleWriter writer(folder(), text::Vocabulary::from_tokens(tokens, "vocabulary"),
                                 text::Casing::kUncased, false);
    const samples::Sample sample = {.tokens = {2, 5, 4, 3, 6, 3},
                                    .first_part = 4,
                                    .masked_positions = {2, 4},
                                    .masked_ids = {6, 6},
                                    .next_sentence = 1};
    for (int i = 0; i < 4; ++i) writer.add(sample, "sound");
    writer.finish("fuzz", {"fuzz"});
  }

  Path folder() const { return root_.path() / "store"; }

 private:
  MemoryFolder root_;
};

void replace(const Path& path, std::string_view content) {
  FileWriter writer(path);
  writer.write(content);
  writer.finish();
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const SoundStore sound;
  if (size == 0) return -1;
  const Path path = sound.folder() / kFiles[data[0] % std::size(kFiles)];
  const std::string before = read_file(path);
  replace(path, text_of(data, size).substr(1));
  expect_error_at_most([&] {
    const samples::SampleStore store(sound.folder());
    samples::Sample sample;
    for (uint64_t index = 0; index < store.samples(); ++index) {
      expect_error_at_most([&] { store.read(index, sample); });
    }
    store.verify();
  });
  replace(path, before);
  return 0;
}
