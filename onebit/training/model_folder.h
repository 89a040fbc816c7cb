// Model folders of Hugging Face's layout, and parameters in and out of them.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onebit/base/error.h"
#include "onebit/formats/hugging_face_folder.h"
#include "onebit/formats/match.h"
#include "onebit/formats/sentence_files.h"
#include "onebit/model/config.h"
#include "onebit/params/table.h"
#include "onebit/text/casing.h"
#include "onebit/text/vocabulary.h"

namespace onebit::training {

inline constexpr const char* kClassifierArchitecture = "BertForSequenceClassification";
inline constexpr const char* kEncoderArchitecture = "BertModel";
inline constexpr const char* kTaggerArchitecture = "BertForTokenClassification";

// What config.json specifies of a classifier; written for these two architectures alone.
struct ClassifierDescription {
  std::vector<std::string> labels;  // by output; empty: the two defaults of transformers
  std::string problem_type;         // transformers' word; empty: not given
  std::optional<double> dropout;    // absent: the model's hidden dropout
};

// What a model folder specifies besides its tensors.
struct ModelDescription {
  model::BertConfig config;
  std::string architecture;  // transformers' class, e.g. "BertForPreTraining"
  std::shared_ptr<const text::Vocabulary> vocabulary;
  text::Casing casing = text::Casing::kUncased;
  ClassifierDescription classifier = {};
  // How vectors of texts are made. read_model_description() leaves it absent; where it is there it
  // is written.
  std::optional<formats::SentenceFiles> sentence = {};
};

// The model as config.json specifies it.
model::BertConfig model_config(const formats::BertConfigFile& file);

// Resolves a model folder, a checkpoint (to its model/) or a run's folder (to the model of its
// `latest` checkpoint); empty if `path` is none of these.
std::optional<Path> model_folder_in(const Path& path);
// The same. Error: `path` is none of these.
Path find_model_folder(const Path& path);

// The models of a run's checkpoints: that of `tag`, or of the one that `latest` names, first.
std::vector<Path> models_of_run(const Path& run, const std::string& tag);
// What `read` makes of the first of them that it can read: they are of one shape and one
// vocabulary, so that where the newest is damaged an older one says the same. Empty: there is none.
// Error: that of the first where no other can be read either.
template <typename Read>
auto read_model_of_run(const Path& run, const std::string& tag, const Read& read)
    -> std::optional<decltype(read(run))> {
  std::exception_ptr first_problem;
  for (const Path& folder : models_of_run(run, tag)) {
    try {
      return read(folder);
    } catch (const Error&) {
      if (first_problem == nullptr) first_problem = std::current_exception();
    }
  }
  if (first_problem != nullptr) std::rethrow_exception(first_problem);
  return std::nullopt;
}

// Every task opens a model's vocabulary and casing here. Errors: see
// formats::read_hugging_face_folder; a vocabulary without special tokens; a tokenizer that treats
// text as onebit's does not.
ModelDescription read_model_description(const Path& model_folder);

// Reads the values of every entry of `table`. Errors: tensors missing, unexpected or of another
// shape, all listed. Differences that the rules allow are logged in a line and returned; files that
// are not as the values were written with are a warning.
formats::MatchReport load_values(params::Table& table, const Path& model_folder,
                                 const formats::MatchRules& rules);

// The values of a table, copied to the host, to be written while training continues.
class ValueSnapshot {
 public:
  explicit ValueSnapshot(const params::Table& table);
  // Writes all files of a model folder, which must exist and be empty.
  void write(const Path& model_folder, const ModelDescription& description) const;

 private:
  std::vector<params::Entry> entries_;
  std::vector<float> values_;
};

}  // namespace onebit::training
