// The files around squad_score.h.
#include "onebit/base/error.h"
#include "onebit/data/squad_score.h"

namespace onebit::data {
namespace {

// Calls add(id, value) for every entry of the object in `path`.
template <typename Add>
void read_by_id(const Path& path, bool (Json::*is_right)() const noexcept, const char* wanted,
                const Add& add) {
  const Json json = read_json(path);
  require(json.is_object(), "{}: an object of question ids was expected", path.string());
  for (const auto& item : json.items()) {
    require((item.value().*is_right)(), "{}: question {}: {} was expected", path.string(),
            item.key(), wanted);
    add(item.key(), item.value());
  }
}

void add_part(Json& json, const std::string& prefix, const std::optional<SquadScore::Part>& part) {
  if (!part) return;
  json[prefix + "exact"] = part->exact;
  json[prefix + "f1"] = part->f1;
  json[prefix + "total"] = part->total;
}

}  // namespace

Json official_json(const SquadScore& score) {
  if (score.rules == ScoreRules::kVersion1) {
    return {{"exact_match", score.all.exact}, {"f1", score.all.f1}};
  }
  Json json;
  add_part(json, "", score.all);
  add_part(json, "HasAns_", score.has_answer);
  add_part(json, "NoAns_", score.no_answer);
  if (score.best_exact && score.best_f1) {
    json["best_exact"] = score.best_exact->score;
    json["best_exact_thresh"] = score.best_exact->threshold;
    json["best_f1"] = score.best_f1->score;
    json["best_f1_thresh"] = score.best_f1->threshold;
  }
  return json;
}

Predictions read_predictions(const Path& path) {
  Predictions predictions;
  read_by_id(path, &Json::is_string, "a string", [&](const std::string& id, const Json& value) {
    predictions[id] = value.get<std::string>();
  });
  return predictions;
}

NullOdds read_null_odds(const Path& path) {
  NullOdds odds;
  read_by_id(path, &Json::is_number, "a number", [&](const std::string& id, const Json& value) {
    odds.emplace_back(id, value.get<double>());
  });
  return odds;
}

}  // namespace onebit::data
