#include "onebit/program/search/search_index.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/parallel_for.h"

namespace onebit::search {
namespace {

constexpr const char* kDescription = "index.json";
constexpr const char* kPassages = "passages.jsonl";
constexpr const char* kVectors = "vectors.npy";
constexpr const char* kScales = "scales.npy";
constexpr const char* kFormat = "onebit search index";
constexpr int64_t kVersion = 1;

embed::VectorFormat format_of(VectorType type) {
  return type == VectorType::kF32 ? embed::VectorFormat::kNumpy : embed::VectorFormat::kNumpyInt8;
}

Json to_json(const IndexDescription& description) {
  return {{"format", kFormat},
          {"version", kVersion},
          {"model", description.model},
          {"type", description.type == VectorType::kF32 ? "f32" : "int8"},
          {"passages", description.passages},
          {"numbers", description.numbers},
          {"max_sequence_length", description.max_sequence_length},
          {"pooling", description.pooling},
          {"prompt", description.prompt},
          {"probe", description.probe}};
}

IndexDescription read_description(const Path& folder) {
  const Path path = folder / kDescription;
  require(std::filesystem::exists(path),
          "{}: not an index of onebit search: there is no {}; `onebit search index` makes one",
          folder.string(), kDescription);
  JsonReader reader(read_json(path), path.string(), "");
  require(reader.text("format", "") == kFormat, "{}: not of an index of onebit search",
          path.string());
  const int64_t version = reader.integer("version", 0);
  require(version == kVersion,
          "{}: the index has version {}, this program reads {}: make it again with `onebit search "
          "index`, or use a newer onebit",
          path.string(), version, kVersion);
  IndexDescription description;
  description.model = reader.text("model", "");
  const std::string type = reader.choice("type", "f32", {"f32", "int8"});
  description.type = type == "f32" ? VectorType::kF32 : VectorType::kInt8;
  description.passages = reader.integer("passages", 0);
  description.numbers = reader.integer("numbers", 0);
  description.max_sequence_length = reader.integer("max_sequence_length", 0);
  description.pooling = reader.text("pooling", "mean");
  description.prompt = reader.text("prompt", "");
  const Json& probe = reader.raw("probe");
  require(probe.is_array() && std::all_of(probe.begin(), probe.end(),
                                          [](const Json& one) { return one.is_number(); }),
          "{}: is not a list of numbers", reader.place("probe"));
  description.probe = probe.get<std::vector<float>>();
  constexpr int64_t kMost = int64_t{1} << 40;
  require(description.passages > 0 && description.numbers > 0 && description.passages < kMost &&
              description.numbers < 1 << 20 &&
              static_cast<int64_t>(description.probe.size()) == description.numbers,
          "{}: {} passages of {} numbers and a probe of {} cannot be: the file is damaged",
          path.string(), description.passages, description.numbers, description.probe.size());
  reader.finish();
  return description;
}

bool is_index(const Path& folder) {
  const Path path = folder / kDescription;
  try {
    return JsonReader(read_json(path), path.string(), "").text("format", "") == kFormat;
  } catch (const std::exception&) {
    return false;
  }
}

// Nothing but an index is ever replaced.
const Path& free_output(const Path& folder, bool overwrite) {
  if (is_index(folder)) {
    require(overwrite, "{}: contains a finished index: use --overwrite to replace it",
            folder.string());
    require_only(folder, {kDescription, kPassages, kVectors, kScales});
  } else {
    require(is_free_for_folder(folder),
            "{}: exists and is not an index of onebit search: choose another output folder",
            folder.string());
  }
  return folder;
}

// A file of vectors that has this header and nothing too much or too little.
MappedFile open_vectors(const Path& path, embed::VectorFormat format, int64_t count,
                        int64_t numbers) {
  MappedFile file(path);
  const std::string header = embed::vector_header(format, count, numbers);
  const auto element = static_cast<size_t>(format == embed::VectorFormat::kNumpy ? 4 : 1);
  const size_t size =
      header.size() + static_cast<size_t>(count) * static_cast<size_t>(numbers) * element;
  require(file.bytes().size() == size &&
              std::memcmp(file.bytes().data(), header.data(), header.size()) == 0,
          "{}: not the {} vectors of {} numbers that index.json describes ({} bytes, expected "
          "{}): make the index again",
          path.string(), count, numbers, file.bytes().size(), size);
  return file;
}

template <typename Element>
const Element* vectors_in(const MappedFile& file) {
  static const size_t kHeaderBytes = embed::vector_header(embed::VectorFormat::kNumpy, 1, 1).size();
  return reinterpret_cast<const Element*>(file.bytes().data() + kHeaderBytes);
}

// Sums in sixteen lanes, which the compiler turns into vectors.
template <typename Element>
float product(const float* query, const Element* vector, size_t numbers) {
  constexpr size_t kLanes = 16;
  std::array<float, kLanes> sums{};
  size_t i = 0;
  for (; i + kLanes <= numbers; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += query[i + lane] * static_cast<float>(vector[i + lane]);
    }
  }
  float sum = 0;
  for (; i < numbers; ++i) sum += query[i] * static_cast<float>(vector[i]);
  for (const float lane : sums) sum += lane;
  return sum;
}

bool is_nearer(const Found& a, const Found& b) {
  return a.cosine != b.cosine ? a.cosine > b.cosine : a.passage < b.passage;
}

// Keeps the nearest `most` in a heap whose top is the farthest.
void keep(std::vector<Found>& nearest, const Found& found, size_t most) {
  if (nearest.size() == most) {
    if (!is_nearer(found, nearest.front())) return;
    std::pop_heap(nearest.begin(), nearest.end(), is_nearer);
    nearest.pop_back();
  }
  nearest.push_back(found);
  std::push_heap(nearest.begin(), nearest.end(), is_nearer);
}

}  // namespace

IndexWriter::IndexWriter(const Path& folder, bool overwrite, IndexDescription description)
    : folder_(free_output(folder, overwrite), overwrite ? Existing::kReplace : Existing::kRefuse),
      description_(std::move(description)),
      passages_(folder_.path() / kPassages),
      vectors_(folder_.path() / kVectors, format_of(description_.type), description_.numbers) {
  description_.passages = 0;
  if (description_.type == VectorType::kInt8) {
    scales_.emplace(folder_.path() / kScales, embed::VectorFormat::kNumpy, 1);
  }
}

void IndexWriter::add(const Passage& passage, std::span<const float> unit) {
  passages_.write(
      json_text({{"file", passage.file}, {"line", passage.line}, {"text", passage.text}}) + "\n");
  if (scales_) {
    const float largest = std::abs(*std::max_element(
        unit.begin(), unit.end(), [](float a, float b) { return std::abs(a) < std::abs(b); }));
    const float scale = std::max(largest, 1e-30f) / 127;
    std::vector<int8_t> whole(unit.size());
    for (size_t i = 0; i < unit.size(); ++i) {
      whole[i] = static_cast<int8_t>(std::lround(unit[i] / scale));
    }
    vectors_.add(whole);
    scales_->add(std::span(&scale, 1));
  } else {
    vectors_.add(unit);
  }
  ++description_.passages;
}

void IndexWriter::finish() {
  require(description_.passages > 0, "the input has no text to find");
  passages_.finish();
  vectors_.finish();
  if (scales_) scales_->finish();
  FileWriter description(folder_.path() / kDescription);
  description.write(exact_json_text(to_json(description_), kDescription, 2) + "\n");
  description.finish();
  folder_.finish(kDescription);
}

Index::Index(const Path& folder)
    : folder_(folder),
      description_(read_description(folder)),
      vectors_(open_vectors(folder / kVectors, format_of(description_.type), description_.passages,
                            description_.numbers)),
      passages_(folder / kPassages) {
  if (description_.type == VectorType::kInt8) {
    scales_ = open_vectors(folder / kScales, embed::VectorFormat::kNumpy, description_.passages, 1);
  }
  find_lines();
}

std::vector<Path> Index::files() const {
  return {folder_ / kDescription, passages_.path(), vectors_.path(), folder_ / kScales};
}

void Index::find_lines() {
  const auto bytes = passages_.bytes();
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  size_t begin = 0;
  while (begin < bytes.size()) {
    const void* end = std::memchr(text + begin, '\n', bytes.size() - begin);
    if (end == nullptr) break;
    lines_.push_back(begin);
    begin = static_cast<size_t>(static_cast<const char*>(end) - text) + 1;
  }
  require(begin == bytes.size() && static_cast<int64_t>(lines_.size()) == description_.passages,
          "{}: has {} whole lines, index.json has {} passages: make the index again",
          passages_.path().string(), lines_.size(), description_.passages);
  lines_.push_back(begin);
}

std::vector<Found> Index::nearest(std::span<const float> unit, int64_t most, int threads) const {
  ONEBIT_INVARIANT(static_cast<int64_t>(unit.size()) == description_.numbers);
  const auto wanted = static_cast<size_t>(std::min(most, description_.passages));
  std::vector<Found> all;
  if (wanted == 0) return all;
  std::mutex mutex;
  std::atomic<int64_t> damaged = -1;
  parallel_for(threads, description_.passages, 4096, [&](int64_t begin, int64_t end) {
    std::vector<Found> own;
    for (int64_t row = begin; row < end; ++row) {
      const size_t first = static_cast<size_t>(row) * unit.size();
      const float cosine =
          description_.type == VectorType::kF32
              ? product(unit.data(), vectors_in<float>(vectors_) + first, unit.size())
              : product(unit.data(), vectors_in<int8_t>(vectors_) + first, unit.size()) *
                    vectors_in<float>(scales_)[row];
      if (!std::isfinite(cosine)) damaged = row;
      keep(own, {row, cosine}, wanted);
    }
    const std::lock_guard lock(mutex);
    all.insert(all.end(), own.begin(), own.end());
  });
  if (damaged >= 0) refuse_vector(damaged);
  std::sort(all.begin(), all.end(), is_nearer);
  all.resize(wanted);
  return all;
}

void Index::refuse_vector(int64_t row) const {
  const bool is_scaled = description_.type == VectorType::kInt8;
  fail("{}: row {} has numbers that are not finite: the file is damaged; make the index again",
       (is_scaled ? scales_ : vectors_).path().string(), row);
}

std::vector<float> Index::vector(int64_t row) const {
  const auto numbers = static_cast<size_t>(description_.numbers);
  const size_t first = static_cast<size_t>(row) * numbers;
  std::vector<float> vector(numbers);
  for (size_t i = 0; i < numbers; ++i) {
    vector[i] = description_.type == VectorType::kF32
                    ? vectors_in<float>(vectors_)[first + i]
                    : static_cast<float>(vectors_in<int8_t>(vectors_)[first + i]) *
                          vectors_in<float>(scales_)[row];
    if (!std::isfinite(vector[i])) refuse_vector(row);
  }
  return vector;
}

Passage Index::passage(int64_t row) const {
  const auto begin = lines_[static_cast<size_t>(row)], end = lines_[static_cast<size_t>(row) + 1];
  const std::string place = fmt::format("{}:{}", passages_.path().string(), row + 1);
  const std::string_view line(reinterpret_cast<const char*>(passages_.bytes().data()) + begin,
                              end - begin);
  JsonReader reader(parse_json(line, place), place, "");
  Passage passage;
  passage.file = reader.text("file", "");
  passage.line = static_cast<uint64_t>(reader.integer("line", 0));
  passage.text = reader.text("text", "");
  reader.finish();
  return passage;
}

}  // namespace onebit::search
