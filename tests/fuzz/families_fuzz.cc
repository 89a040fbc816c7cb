// A config.json of any family of encoders, and the names and shapes of its tensors. What onebit
// writes of a config that it has read must be read as the same one, and tensors under onebit's
// names must have the family's names again.
#include "onebit/data/formats/families.h"

#include <charconv>
#include <cstdlib>

#include "onebit/data/formats/encoder_config_file.h"
#include "onebit/data/formats/encoder_shape.h"
#include "onebit/data/formats/name_map.h"
#include "onebit/ground/base/json.h"
#include "tests/formats/memory_source.h"
#include "tests/fuzz/fuzz_input.h"

using namespace onebit;

namespace {

constexpr int64_t kMostElements = 4096;

int64_t extent_of(std::string_view text) {
  int64_t extent = 0;
  std::from_chars(text.data(), text.data() + text.size(), extent);
  return std::clamp<int64_t>(extent, 0, 64);
}

// Lines such as "embeddings.word_embeddings.weight 5 4".
std::vector<formats::TensorEntry> tensors_of(std::string_view lines) {
  std::vector<formats::TensorEntry> entries;
  int64_t elements = 0;
  while (!lines.empty() && entries.size() < 64) {
    std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    const size_t blank = line.find(' ');
    formats::TensorEntry entry{std::string(line.substr(0, blank)), DType::kF32, Shape()};
    while (line.find(' ') != std::string_view::npos && entry.shape.rank() < 3) {
      line.remove_prefix(line.find(' ') + 1);
      entry.shape.append(extent_of(line));
    }
    elements += entry.shape.elements();
    if (elements > kMostElements) break;
    entries.push_back(std::move(entry));
  }
  return entries;
}

formats::EncoderConfigFile config_of(std::string_view text) {
  const auto config = formats::parse_encoder_config(parse_json(text, "config.json"), "config.json");
  try {
    const std::string written = formats::encoder_config_text(config);
    if (formats::parse_encoder_config(parse_json(written, "again"), "again") != config) {
      std::abort();
    }
  } catch (const Error&) {
    std::abort();
  }
  return config;
}

// A tensor that keeps its name has its values.
void rename(const std::shared_ptr<formats::MemorySource>& source, const std::string& place,
            const formats::EncoderConfigFile& config) {
  const formats::ModelNames names = formats::names_of(config);
  const auto ours = formats::under_our_names(source, nullptr, names);
  expect_error_at_most(
      [&] { formats::require_sizes_of_tensors(config, place, ours->entries(), ours->place()); });
  std::vector<std::byte> scratch, original;
  for (size_t i = 0; i < ours->entries().size(); ++i) ours->bytes(i, scratch);
  const auto back = formats::under_own_names(ours, names);
  for (size_t i = 0; i < back->entries().size(); ++i) {
    const auto bytes = back->bytes(i, scratch);
    const auto same = source->find(back->entries()[i].name);
    if (!same || source->entries()[*same].shape != back->entries()[i].shape) continue;
    const auto before = source->bytes(*same, original);
    if (!std::equal(bytes.begin(), bytes.end(), before.begin(), before.end())) std::abort();
  }
}

}  // namespace

// The tensors stand behind a zero byte.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = text_of(data, size);
  const size_t end = std::min(input.find('\0'), input.size());
  expect_error_at_most([&] {
    const formats::EncoderConfigFile config = config_of(input.substr(0, end));
    const auto source = std::make_shared<formats::MemorySource>(
        "tensors", tensors_of(input.substr(std::min(end + 1, input.size()))));
    rename(source, "config.json", config);
  });
  return 0;
}
