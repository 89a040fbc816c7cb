// What read_label_names() reads.
#include <optional>
#include <utility>

#include "onebit/data/formats/encoder_config_file.h"
#include "onebit/ground/base/config_keys.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/number.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {

namespace {

constexpr const char* kIdToLabel = "id2label";
constexpr const char* kLabelToId = "label2id";
constexpr const char* kNumLabels = "num_labels";

// Defaults are made for each of them, before the tensors have been seen.
constexpr int64_t kMaxLabels = 1'000'000;

// Labels by id, each set once.
class Labels {
 public:
  Labels(std::string place, size_t count) : place_(std::move(place)), labels_(count), set_(count) {}

  void set(std::optional<size_t> id, std::optional<std::string> label, const std::string& shown) {
    require(id && *id < labels_.size() && !set_[*id] && label,
            "{} must give one name to each of the ids 0 to {}, {} does not fit", place_,
            labels_.size() - 1, quote(shown));
    set_[*id] = true;
    labels_[*id] = std::move(*label);
  }
  std::vector<std::string> take() { return std::move(labels_); }

 private:
  std::string place_;
  std::vector<std::string> labels_;
  std::vector<bool> set_;
};

std::optional<std::string> name_in(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return json_text(value);
  return std::nullopt;
}

std::optional<size_t> id_in(const Json& value) {
  if (value.is_string()) return whole_number<size_t>(value.get<std::string>());
  if (!is_whole(value) || value.get<double>() < 0) return std::nullopt;
  return value.get<size_t>();
}

std::vector<std::string> from_ids(JsonReader& reader) {
  const Json& given = reader.raw(kIdToLabel);
  if (given.is_null()) return {};
  require(given.is_object() || given.is_array(), "{} must be an object", reader.place(kIdToLabel));
  Labels labels(reader.place(kIdToLabel), given.size());
  size_t next = 0;
  for (const auto& [key, value] : given.items()) {
    const auto id = given.is_array() ? std::optional(next++) : whole_number<size_t>(key);
    labels.set(id, name_in(value), key);
  }
  return labels.take();
}

std::vector<std::string> from_names(JsonReader& reader) {
  const Json& given = reader.raw(kLabelToId);
  if (given.is_null()) return {};
  require(given.is_object(), "{} must be an object", reader.place(kLabelToId));
  Labels labels(reader.place(kLabelToId), given.size());
  for (const auto& [key, value] : given.items()) labels.set(id_in(value), key, key);
  return labels.take();
}

}  // namespace

std::vector<std::string> read_label_names(JsonReader& reader) {
  std::vector<std::string> labels = from_ids(reader);
  if (!labels.empty() && !are_default_labels(labels)) {
    reader.accept(kLabelToId);
    return labels;
  }
  // transformers computes with id2label. label2id names the ids that have no name there.
  std::vector<std::string> named = from_names(reader);
  if (labels.empty() || named.size() == labels.size()) labels = std::move(named);
  const int64_t count = reader.integer(kNumLabels, 2);
  require(count >= 1 && count <= kMaxLabels, "{} is {}; it must be at least 1 and at most {}",
          reader.place(kNumLabels), count, kMaxLabels);
  if (!labels.empty() || count == 2) return labels;
  for (size_t id = 0; id < static_cast<size_t>(count); ++id) labels.push_back(default_label(id));
  return labels;
}

}  // namespace onebit::formats
