#include "onebit/data/formats/tensor_source.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "onebit/data/formats/safetensors.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/printable.h"
#include "onebit/ground/base/wording.h"

namespace onebit::formats {

namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian, as is onebit");

// Elements may be unaligned in the file, hence the copies through memcpy.
template <typename T>
void widen(std::span<const std::byte> from, std::span<float> to) {
  for (size_t i = 0; i < to.size(); ++i) {
    T element;
    std::memcpy(&element, from.data() + i * sizeof(T), sizeof(T));
    to[i] = static_cast<float>(element);
  }
}

// Numbers beyond f32 would become infinite.
void narrow_f64(std::span<const std::byte> from, std::span<float> to, const std::string& tensor) {
  for (size_t i = 0; i < to.size(); ++i) {
    double element = 0;
    std::memcpy(&element, from.data() + i * sizeof element, sizeof element);
    to[i] = static_cast<float>(element);
    require(std::isfinite(to[i]) || !std::isfinite(element),
            "{}: the value {} is too large for f32", tensor, element);
  }
}

// Enough names to suggest one for a mistyped name without comparing against millions.
constexpr size_t kMaxCompared = 10000;

}  // namespace

void drop_pages(std::span<const std::byte> read) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t into = reinterpret_cast<uintptr_t>(read.data()) % page;
  const size_t skipped = into == 0 ? 0 : page - into;
  if (read.size() < skipped + page) return;
  const std::span<const std::byte> whole =
      read.subspan(skipped, (read.size() - skipped) / page * page);
  ::madvise(const_cast<std::byte*>(whole.data()), whole.size(), MADV_DONTNEED);
}

void TensorSource::set_entries(std::string place, std::vector<TensorEntry> entries) {
  place_ = std::move(place);
  entries_ = std::move(entries);
  index_.clear();
  index_.reserve(entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i) {
    const bool is_new = index_.emplace(entries_[i].name, i).second;
    require(is_new, "{}: tensor {} is duplicated; the file is damaged", place_,
            quote(entries_[i].name));
  }
}

std::optional<size_t> TensorSource::find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  if (found == index_.end()) return std::nullopt;
  return found->second;
}

size_t TensorSource::index_of(std::string_view name) const {
  if (const auto found = find(name)) return *found;
  std::vector<std::string> names;
  for (const TensorEntry& entry : entries_) {
    if (names.size() < kMaxCompared) names.push_back(entry.name);
  }
  const std::string near = nearest_word(name, names);
  fail("{}: contains no tensor {}{}", place_, quote(name),
       near.empty() ? fmt::format(" (it contains {})", entries_.size())
                    : fmt::format("; the nearest is {}", quote(near)));
}

const TensorEntry& TensorSource::readable_entry(size_t index) const {
  ONEBIT_INVARIANT(index < entries_.size());
  const TensorEntry& entry = entries_[index];
  require(entry.unreadable.empty(), "{}: tensor {} cannot be read: {}", place_, quote(entry.name),
          entry.unreadable);
  return entry;
}

std::span<const std::byte> TensorSource::readable_part(size_t index, ByteRange range,
                                                       std::vector<std::byte>& scratch) const {
  return bytes(index, scratch).subspan(range.begin, range.size_bytes);
}

std::span<const std::byte> TensorSource::bytes(size_t index,
                                               std::vector<std::byte>& scratch) const {
  const TensorEntry& entry = readable_entry(index);
  const auto result = readable_bytes(index, scratch);
  ONEBIT_INVARIANT(static_cast<int64_t>(result.size()) == entry.size_bytes());
  return result;
}

void TensorSource::read_f32(size_t index, std::span<float> to) const {
  ONEBIT_INVARIANT(index < entries_.size());
  const TensorEntry& entry = entries_[index];
  require(static_cast<int64_t>(to.size()) == entry.shape.elements(),
          "{}: tensor {} has shape {}, {} elements were expected", place_, quote(entry.name),
          to_string(entry.shape), to.size());
  read_f32(index, 0, to);
}

void TensorSource::read_f32(size_t index, int64_t begin, std::span<float> to) const {
  const TensorEntry& entry = readable_entry(index);
  const auto count = static_cast<int64_t>(to.size()), elements = entry.shape.elements();
  require(begin >= 0 && begin <= elements && count <= elements - begin,
          "{}: tensor {} has {} elements, [{}, {}) were requested", place_, quote(entry.name),
          elements, begin, begin + count);
  std::vector<std::byte> scratch;
  const auto element_bytes = static_cast<size_t>(size_bytes_of(entry.dtype));
  const auto from = readable_part(index,
                                  {.begin = static_cast<size_t>(begin) * element_bytes,
                                   .size_bytes = static_cast<size_t>(count) * element_bytes},
                                  scratch);
  ONEBIT_INVARIANT(from.size() == static_cast<size_t>(count) * element_bytes);
  switch (entry.dtype) {
    case DType::kF32:
      if (!to.empty()) std::memcpy(to.data(), from.data(), from.size());
      return;
    case DType::kBF16:
      return widen<bf16>(from, to);
    case DType::kF16:
      return widen<f16>(from, to);
    case DType::kF64:
      return narrow_f64(from, to, fmt::format("{}: tensor {}", place_, quote(entry.name)));
    default:
      fail("{}: tensor {} contains {}; a model's values must be f32, bf16, f16 or f64", place_,
           quote(entry.name), name_of(entry.dtype));
  }
}

ShardedSource::ShardedSource(const Path& index_path, const Opener& open) {
  const std::string place = index_path.string();
  const Json index = read_json(index_path);
  require(index.is_object() && index.contains("weight_map") && index["weight_map"].is_object(),
          "{}: an index of files must be an object with the object \"weight_map\"", place);
  std::map<std::string, size_t> shard_of_file;
  std::vector<TensorEntry> entries;
  for (const auto& [name, file] : index["weight_map"].items()) {
    require(file.is_string(), "{}: weight_map: {} must name a file", place, quote(name));
    const std::string file_name = file.get<std::string>();
    require(!file_name.empty() && file_name != ".." &&
                file_name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos,
            "{}: weight_map: {} must be the name of a file in the same folder", place,
            quote(file_name));
    const auto [shard, is_new] = shard_of_file.emplace(file_name, shards_.size());
    if (is_new) {
      shards_.push_back(open(index_path.parent_path() / file_name));
    }
    const TensorSource& source = *shards_[shard->second];
    const auto found = source.find(name);
    require(found.has_value(), "{}: weight_map places {} in {}, which lacks it", place, quote(name),
            source.place());
    where_.emplace_back(shard->second, *found);
    entries.push_back(source.entries()[*found]);
  }
  set_entries(place, std::move(entries));
  for (const auto& shard : shards_) {
    for (const TensorEntry& entry : shard->entries()) {
      require(find(entry.name).has_value(), "{}: contains tensor {}, which {} does not name",
              shard->place(), quote(entry.name), place);
    }
  }
}

std::span<const std::byte> ShardedSource::readable_bytes(size_t index,
                                                         std::vector<std::byte>& scratch) const {
  const auto [shard, index_in_shard] = where_[index];
  return shards_[shard]->bytes(index_in_shard, scratch);
}

void ShardedSource::verify_checksum() const {
  for (const auto& shard : shards_) shard->verify_checksum();
}

std::shared_ptr<const TensorSource> open_sharded_safetensors(const Path& index_path) {
  return std::make_shared<ShardedSource>(
      index_path, [](const Path& path) { return std::make_shared<SafetensorsFile>(path); });
}

namespace {

constexpr size_t kMaxListed = 20;

bool covered(const std::string& name, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return name.starts_with(prefix); });
}

// "\n  missing (3):\n    a\n    b\n    c".
std::string listed(std::string_view title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = fmt::format("\n  {} ({}):", title, lines.size());
  for (size_t i = 0; i < std::min(lines.size(), kMaxListed); ++i) text += "\n    " + lines[i];
  if (lines.size() > kMaxListed) {
    text += fmt::format("\n    ... and {} more", lines.size() - kMaxListed);
  }
  return text;
}

}  // namespace

std::string MatchReport::describe() const {
  std::vector<std::string> absent, surplus, shapes;
  for (const auto& name : missing) absent.push_back(quote(name));
  for (const auto& name : unexpected) surplus.push_back(quote(name));
  for (const auto& [name, wanted, found] : wrong_shape) {
    shapes.push_back(
        fmt::format("{}: {} wanted, {} found", quote(name), to_string(wanted), to_string(found)));
  }
  return listed("missing", absent) + listed("of another shape", shapes) +
         listed("unexpected", surplus);
}

MatchReport match_tensors(std::span<const TensorEntry> found, std::span<const WantedTensor> wanted,
                          const MatchRules& rules) {
  MatchReport report;
  std::unordered_map<std::string, const TensorEntry*> left;
  for (const TensorEntry& entry : found) left.emplace(entry.name, &entry);
  for (const auto& [name, shape] : wanted) {
    const auto here = left.find(name);
    if (covered(name, rules.replaced)) {
      report.lacking.push_back(name);
      if (here != left.end()) report.ignored.push_back(name);
      left.erase(name);
      continue;
    }
    if (here == left.end()) {
      (covered(name, rules.may_lack) ? report.lacking : report.missing).push_back(name);
      continue;
    }
    if (!(here->second->shape == shape)) {
      report.wrong_shape.push_back({name, shape, here->second->shape});
    }
    left.erase(here);
  }
  for (const TensorEntry& entry : found) {  // in file order
    if (!left.contains(entry.name)) continue;
    (covered(entry.name, rules.may_ignore) ? report.ignored : report.unexpected)
        .push_back(entry.name);
  }
  return report;
}

MatchReport require_match(const TensorSource& source, std::span<const WantedTensor> wanted,
                          const MatchRules& rules) {
  MatchReport report = match_tensors(source.entries(), wanted, rules);
  require(report.ok(), "{}: its tensors are not those of the model:{}", source.place(),
          report.describe());
  return report;
}

}  // namespace onebit::formats
