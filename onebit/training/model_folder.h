// Model folders of Hugging Face's layout, and parameters in and out of them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onebit/formats/hugging_face_folder.h"
#include "onebit/formats/match.h"
#include "onebit/model/config.h"
#include "onebit/params/table.h"
#include "onebit/text/casing.h"
#include "onebit/text/vocabulary.h"

namespace onebit::training {

// What a model folder says besides its tensors.
struct ModelDescription {
  model::BertConfig config;
  std::string architecture;  // transformers' class, e.g. "BertForPreTraining"
  std::shared_ptr<const text::Vocabulary> vocabulary;
  text::Casing casing = text::Casing::kUncased;
};

// What config.json says about the model.
model::BertConfig model_config(const formats::BertConfigFile& file);

// A model folder, a checkpoint (its model/ is meant) or a run's folder (the model of its `latest`
// checkpoint is meant); empty when `path` is none of these.
std::optional<Path> model_folder_in(const Path& path);
// The same; none of these is an error.
Path find_model_folder(const Path& path);

// Errors: see formats::read_hugging_face_folder; a vocabulary without special tokens.
ModelDescription read_model_description(const Path& model_folder);

// Reads the values of every entry of `table`. Errors: tensors missing, unexpected or of another
// shape, all listed. What the rules cover is told in a line of the log.
void load_values(params::Table& table, const Path& model_folder, const formats::MatchRules& rules);

// The values of a table, copied to the host, to be written while training goes on.
class ValueSnapshot {
 public:
  explicit ValueSnapshot(const params::Table& table);
  // Writes a whole model folder (existing, empty).
  void write(const Path& model_folder, const ModelDescription& description) const;

 private:
  std::vector<params::Entry> entries_;
  std::vector<float> values_;
};

}  // namespace onebit::training
