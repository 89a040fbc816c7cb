// Model folders in Hugging Face's layout: reads and writes parameters and the model's description.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/data/formats/hugging_face_folder.h"
#include "onebit/data/formats/sentence_files.h"
#include "onebit/data/formats/tensor_source.h"
#include "onebit/data/text/casing.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/device/constant_weights.h"
#include "onebit/math/device/context.h"
#include "onebit/math/model/config.h"
#include "onebit/math/tensor/parameter_table.h"
#include "onebit/training/training/table_rows.h"

namespace onebit::training {

// A classifier's settings in config.json, written only for the two classifier architectures.
struct ClassifierDescription {
  std::vector<std::string> labels;  // by output. Empty: the two defaults of transformers
  std::string problem_type;         // as named in transformers. Empty: not given
  std::optional<double> dropout;    // absent: the model's hidden dropout
  // What a CrossEncoder applies to the outputs. Absent: the folder is none.
  std::optional<formats::ScoreActivation> score_activation = {};
};

// The contents of a model folder besides its tensors.
struct ModelDescription {
  model::EncoderConfig config;
  std::string architecture;  // transformers' class of a BERT, such as "BertForPreTraining"
  std::shared_ptr<const text::Vocabulary> vocabulary;
  text::Casing casing = text::Casing::kUncased;
  std::optional<int64_t> tokenizer_limit = {};  // "model_max_length". Only read
  ClassifierDescription classifier = {};
  // Whether a question-answering model was trained on questions without an answer (SQuAD 2.0).
  // Absent: the folder does not say. Written only for that architecture.
  std::optional<bool> may_be_unanswerable = {};
  double answer_dropout = 0;  // before the head for answers
  // Whether there is a tensor "classifier.weight", which the architecture may lack. Only read.
  bool has_classifier = false;
  // How sentence vectors are computed. read_model_description() leaves it empty. If set, it is
  // written.
  std::optional<formats::SentenceFiles> sentence = {};

  // The token that has no position, wherever it stands: the pad token, also one that is written in
  // a text, where the family's first position follows its id (RoBERTa, MPNet). Empty: every token
  // has one.
  std::optional<int32_t> uncounted_token() const;
};

// The model as config.json specifies it.
model::EncoderConfig model_config(const formats::EncoderConfigFile& file);

// Resolves a model folder, a checkpoint (to its model/) or a run's folder (to the model of its
// `latest` checkpoint). Empty if `path` is none of these.
std::optional<Path> model_folder_in(const Path& path);
// Does the same. Error: `path` is none of these.
Path find_model_folder(const Path& path);

// Model folders of a run's checkpoints, first the one of `tag`, or of `latest` if `tag` is empty.
std::vector<Path> models_of_run(const Path& run, const std::string& tag);
// Returns `read(folder)` for the first of these models that can be read. All of them have the same
// shape and vocabulary, so if the newest is damaged, an older one gives the same result. Empty: the
// run has no models. Error: none can be read. The error of the first is rethrown.
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

// Used by every task to read a model's vocabulary and casing. Errors: as for
// formats::read_hugging_face_folder, and a vocabulary without special tokens, a tokenizer that
// processes text differently from onebit's, sizes of the config that the tensors do not have.
ModelDescription read_model_description(const Path& model_folder);

// Reads the values of every entry of `table`. Errors: tensors missing, unexpected or of another
// shape, all listed. Differences that the rules allow are logged (tensors that are not used
// as debug lines, since most models have some) and returned. Values that are not finite, and files
// that have changed since the values were written, cause a warning.
formats::MatchReport load_values(ParameterTable& table, const Path& model_folder,
                                 const formats::MatchRules& rules);

// The type in which a model computes on a device if none is chosen: bf16 on CUDA devices, where f32
// takes many times as long, and f32 on CPUs.
DType usual_compute_type(Device device);

// The type to compute in with which a model multiplies bytes (ops/int8_linear.h) and does the rest
// in f32. Only CPUs compute so, never unasked, and only predictions.
inline constexpr DType kInt8 = DType::kU8;
// "f32", "bf16" or "int8".
std::string_view compute_name(DType compute);

// How long predictions read the file of a model's values.
enum class FileUse {
  // Lookup tables stay in the file if the model computes in f32 on a CPU: a process starts sooner,
  // and several share the memory. Whoever overwrites the file changes what they compute, or ends
  // them if it becomes shorter.
  kWhileUsed,
  // Everything is copied: the file may change afterwards.
  kToLoad,
};

// Allocates `table` to compute in `compute`, or without it in the device's usual type, which is
// logged unless it is f32, and loads the values of every entry, as load_values()
// does, in the form in which predictions read them: memory that they do not read is given back, so
// table.values() is incomplete afterwards. The values must not change while the result lives, and
// the context must outlive it. Error: kInt8 where the device or the processor cannot.
[[nodiscard]] ConstantWeights load_for_inference(Context& context, ParameterTable& table,
                                                 std::optional<DType> compute,
                                                 const Path& model_folder,
                                                 const formats::MatchRules& rules,
                                                 FileUse file_use = FileUse::kWhileUsed);

// A copy of a table's values on the host, which can be written while training continues.
class ValueSnapshot {
 public:
  explicit ValueSnapshot(const ParameterTable& table);
  // Writes all files of a model folder, which must exist and be empty.
  void write(const Path& model_folder, const ModelDescription& description) const;

 private:
  std::vector<ParameterEntry> entries_;
  std::vector<float> values_;
};

// README.md of a model folder, as model hubs show it: what the model is, its data and how it was
// trained.
struct ModelCard {
  std::string task;  // the recipe's
  int64_t step = 0, steps = 0, samples = 0;
  std::string initial_values;  // of the run, however often it was resumed. Empty: not known
  Rows data;                   // as in the start table
  Json data_identity;          // checksums, as in a checkpoint's client state
  std::string result;          // of the last evaluation, in words. Empty: there was none
  int64_t result_step = 0;
  Json recipe;
};

std::string model_card_text(const ModelCard& card, const ModelDescription& description);
// Writes README.md beside the model's other files.
void write_model_card(const Path& model_folder, const ModelCard& card,
                      const ModelDescription& description);

}  // namespace onebit::training
