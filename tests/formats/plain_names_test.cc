#include "onebit/data/formats/plain_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"

namespace onebit::formats {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<TensorEntry> entries_of(const std::vector<std::string>& names) {
  std::vector<TensorEntry> entries;
  for (const std::string& name : names) entries.push_back({name, DType::kF32, {2}});
  return entries;
}

PlainNames plain(const std::vector<std::string>& names, Naming naming = Naming::kHuggingFace) {
  return plain_names(entries_of(names), naming, "m.bin");
}

TEST(PlainNames, PrefixesOfWrappersAreRemoved) {
  for (const std::string prefix :
       {"model.", "_orig_mod.", "module.module.", "model._orig_mod.module.", "net.bert_model."}) {
    const PlainNames found =
        plain({prefix + "bert.embeddings.word_embeddings.weight",
               prefix + "bert.encoder.layer.0.output.dense.bias", prefix + "cls.predictions.bias"});
    EXPECT_THAT(found.names,
                ElementsAre("bert.embeddings.word_embeddings.weight",
                            "bert.encoder.layer.0.output.dense.bias", "cls.predictions.bias"))
        << prefix;
    // Wrappers that may be anywhere need no report.
    if (prefix.find("_orig_mod") == std::string::npos) {
      EXPECT_EQ(found.report(), "the prefix \"" + prefix + "\" was removed from all names");
    }
  }
}

TEST(PlainNames, ABareEncoderGetsItsName) {
  for (const std::string prefix : {"", "0.auto_model.", "encoder.", "bert.module."}) {
    EXPECT_THAT(plain({prefix + "embeddings.word_embeddings.weight",
                       prefix + "encoder.layer.0.output.dense.bias", prefix + "pooler.dense.bias"})
                    .names,
                ElementsAre("bert.embeddings.word_embeddings.weight",
                            "bert.encoder.layer.0.output.dense.bias", "bert.pooler.dense.bias"))
        << prefix;
  }
  // A head beside the encoder keeps its name.
  const PlainNames found =
      plain({"encoder.embeddings.word_embeddings.weight", "classifier.weight", "pooler.weight"});
  EXPECT_THAT(found.names, ElementsAre("bert.embeddings.word_embeddings.weight",
                                       "classifier.weight", "pooler.weight"));
  EXPECT_EQ(found.report(), "the prefix \"encoder.\" was removed from 1 of 3 names");
}

TEST(PlainNames, WrappedLayersAreFoundInsideNames) {
  EXPECT_THAT(plain({"bert.embeddings.word_embeddings.weight",
                     "bert.encoder.layer.0._fsdp_wrapped_module.output.dense.bias",
                     "bert.encoder.layer.1._checkpoint_wrapped_module._orig_mod.output.dense.bias",
                     "my_orig_mod.weight"})
                  .names,
              ElementsAre("bert.embeddings.word_embeddings.weight",
                          "bert.encoder.layer.0.output.dense.bias",
                          "bert.encoder.layer.1.output.dense.bias", "my_orig_mod.weight"));
}

TEST(PlainNames, ScopesOfTensorFlowAreRemoved) {
  EXPECT_THAT(
      plain({"tower/bert/embeddings/word_embeddings", "tower/cls/predictions/output_bias",
             "global_step"},
            Naming::kGoogle)
          .names,
      ElementsAre("bert/embeddings/word_embeddings", "cls/predictions/output_bias", "global_step"));
  EXPECT_THAT(
      plain({"tower/embeddings/word_embeddings/.ATTRIBUTES/VARIABLE_VALUE",
             "tower/encoder/layer_0/output/dense/bias/.ATTRIBUTES/VARIABLE_VALUE"},
            Naming::kGoogle)
          .names,
      ElementsAre("bert/embeddings/word_embeddings", "bert/encoder/layer_0/output/dense/bias"));
}

TEST(PlainNames, AnEncoderWithoutAPrefixIsTheModel) {
  const std::vector<std::string> names = {"bert.embeddings.word_embeddings.weight",
                                          "teacher.bert.embeddings.word_embeddings.weight"};
  const PlainNames found = plain(names);
  EXPECT_EQ(found.names, names);
  EXPECT_EQ(found.report(), "");
}

TEST(PlainNames, Errors) {
  const auto error = [](const std::vector<std::string>& names) {
    return message_of([&] { plain(names); });
  };
  EXPECT_THAT(
      error({"a.bert.embeddings.word_embeddings.weight", "b.embeddings.word_embeddings.weight"}),
      AllOf(HasSubstr("m.bin: contains 2 encoders, whose names begin with \"a.\", \"b.\""),
            HasSubstr("--drop PREFIX")));
  EXPECT_THAT(error({"model.roberta.embeddings.word_embeddings.weight"}),
              HasSubstr("\"model.roberta.\": this is another kind of model than BERT"));
}

TEST(SomeNames, ShowsThoseOfEmbeddingsFirst) {
  EXPECT_EQ(some_names(entries_of({"a", "b", "x.word_embeddings", "c"})),
            "\"x.word_embeddings\", \"a\", \"b\"");
  EXPECT_EQ(some_names(entries_of({"\x1b[31m"})), "\"\\x1b[31m\"");
  EXPECT_EQ(some_names({}), "none");
}

}  // namespace
}  // namespace onebit::formats
