// A classifier's labels, and what makes scores of its outputs.
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
  const bool is_counted = !reader.raw(kNumLabels).is_null();
  const int64_t count = reader.integer(kNumLabels, 2);
  require(count >= 1 && count <= kMaxLabels, "{} is {}; it must be at least 1 and at most {}",
          reader.place(kNumLabels), count, kMaxLabels);
  require(labels.empty() || !is_counted || labels.size() == static_cast<size_t>(count),
          "{} is {}, and {} has {}: transformers 5 gives the model {} outputs without names, and "
          "earlier ones {}; remove the wrong key",
          reader.place(kNumLabels), count, kIdToLabel, labels.size(), count, labels.size());
  if (!labels.empty() && !are_default_labels(labels)) {
    reader.accept(kLabelToId);
    return labels;
  }
  // transformers computes with id2label. label2id names the ids that have no name there.
  std::vector<std::string> named = from_names(reader);
  if (labels.empty() || named.size() == labels.size()) labels = std::move(named);
  if (!labels.empty() || count == 2) return labels;
  for (size_t id = 0; id < static_cast<size_t>(count); ++id) labels.push_back(default_label(id));
  return labels;
}

namespace {

constexpr const char* kSection = "sentence_transformers";
constexpr const char* kActivation = "activation_fn";
constexpr const char* kOlderActivation = "sbert_ce_default_activation_function";

// Absent: the key has no value.
std::optional<ScoreActivation> activation_at(JsonReader& reader, const char* key) {
  const Json& given = reader.raw(key);
  if (given.is_null()) return std::nullopt;
  // PyTorch's class has a long and a short name.
  const auto is_one_of = [&](const char* name, const char* full) {
    return given == name || given == full;
  };
  if (is_one_of("torch.nn.Identity", "torch.nn.modules.linear.Identity")) {
    return ScoreActivation::kIdentity;
  }
  if (is_one_of("torch.nn.Sigmoid", "torch.nn.modules.activation.Sigmoid")) {
    return ScoreActivation::kSigmoid;
  }
  fail(
      "{} is {}; onebit's scores are the outputs of the model or their sigmoid: write "
      "\"torch.nn.modules.linear.Identity\" there to get the outputs and apply it yourself",
      reader.place(key), json_text(given));
}

// A CrossEncoder puts its default prompt before its texts.
void refuse_prompt(JsonReader& members) {
  const std::string name = members.text("default_prompt_name", "");
  const Json& prompts = members.raw("prompts");
  const Json prompt = prompts.is_object() ? prompts.value(name, Json(name)) : Json(name);
  require(
      name.empty() || prompt.is_null() || prompt == Json(std::string()),
      "{} is {}: sentence-transformers puts that prompt before the texts of a CrossEncoder, and "
      "onebit does not; put it into the texts and remove the key",
      members.place("default_prompt_name"), quote(name));
}

}  // namespace

std::optional<ScoreActivation> read_score_activation(const Json& config, const std::string& place,
                                                     const Json& own, const std::string& own_place,
                                                     size_t outputs) {
  JsonReader reader(config, place, "");
  const bool has_section = reader.raw(kSection).is_object();
  const bool is_own = own.is_object() && own.value("model_type", Json()) == "CrossEncoder";
  if (!is_own && !has_section && !reader.has(kOlderActivation)) return std::nullopt;
  std::optional<ScoreActivation> found;
  if (is_own) {
    JsonReader members(own, own_place, "");
    found = activation_at(members, kActivation);
    refuse_prompt(members);
  }
  if (!found && has_section) {
    JsonReader section = reader.object(kSection);
    found = activation_at(section, kActivation);
  }
  if (!found) found = activation_at(reader, kOlderActivation);
  return found.value_or(outputs == 1 ? ScoreActivation::kSigmoid : ScoreActivation::kIdentity);
}

}  // namespace onebit::formats
