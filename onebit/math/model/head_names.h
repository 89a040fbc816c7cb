// The names of all heads: their tensors in checkpoints, and the classes of transformers that have
// them. A new head is added to kHeadPrefixes and kHeadParts, and its class to kArchitectures.
#pragma once

namespace onebit::model {

// Prefixes of the tensors' names.
inline constexpr const char* kPooler = "bert.pooler.";
inline constexpr const char* kPretrainingHeads = "cls.";  // the next two
inline constexpr const char* kMaskedWordHead = "cls.predictions.";
inline constexpr const char* kNextSentenceHead = "cls.seq_relationship.";
inline constexpr const char* kAnswerHead = "qa_outputs.";
inline constexpr const char* kClassifierHead = "classifier.";

// Every tensor that is not the encoder's has one of these prefixes.
inline constexpr const char* kHeadPrefixes[] = {kPooler, kPretrainingHeads, kAnswerHead,
                                                kClassifierHead};
// The same, with the heads of pre-training one by one.
inline constexpr const char* kHeadParts[] = {kPooler, kMaskedWordHead, kNextSentenceHead,
                                             kAnswerHead, kClassifierHead};

// Classes of transformers, as in config.json.
inline constexpr const char* kPretrainingArchitecture = "BertForPreTraining";
inline constexpr const char* kMaskedWordArchitecture = "BertForMaskedLM";
inline constexpr const char* kAnswerArchitecture = "BertForQuestionAnswering";
inline constexpr const char* kClassifierArchitecture = "BertForSequenceClassification";
inline constexpr const char* kTaggerArchitecture = "BertForTokenClassification";
inline constexpr const char* kEncoderArchitecture = "BertModel";

struct Architecture {
  const char* name;
  const char* pipeline;  // the hub's name of what such a model does
  const char* loader;    // the class with which transformers loads it
};
// Every architecture with a head that a task writes.
inline constexpr Architecture kArchitectures[] = {
    {kPretrainingArchitecture, "fill-mask", "AutoModelForMaskedLM"},
    {kMaskedWordArchitecture, "fill-mask", "AutoModelForMaskedLM"},
    {kAnswerArchitecture, "question-answering", "AutoModelForQuestionAnswering"},
    {kClassifierArchitecture, "text-classification", "AutoModelForSequenceClassification"},
    {kTaggerArchitecture, "token-classification", "AutoModelForTokenClassification"}};

}  // namespace onebit::model
