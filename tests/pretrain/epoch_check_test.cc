#include "onebit/apps/pretrain/epoch_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/data/batches/batch_stream.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/corpus/sample_store.h"

namespace onebit::pretrain {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Documents = std::vector<corpus::SampleDocument>;

class EpochCheckTest : public ::testing::Test {
 protected:
  // Stores of the given documents, in one mixture.
  void make(const std::vector<Documents>& stores, batches::PairOptions pairs = {}) {
    stores_.clear();
    pairs_ = pairs;
    for (const Documents& documents : stores) {
      const Path folder = folder_ / fmt::format("store{}", ++made_);
      stores_.push_back({corpus::make_store(folder, documents, 30000)});
    }
    figures_ = batches::BatchStream(stores_, {.seed = 1, .pairs = pairs}).figures();
  }
  std::string refused() {
    return message_of([&] { require_useful_labels(stores_, figures_, pairs_); });
  }
  std::vector<std::string> warnings() { return warnings_of_training(stores_, figures_, pairs_); }
  std::vector<std::string> held_out_warnings() {
    return warnings_of_held_out(*stores_[0].store, figures_[0], pairs_);
  }

  TemporaryFolder folder_;
  int made_ = 0;
  Stores stores_;
  std::vector<batches::EpochFigures> figures_;
  batches::PairOptions pairs_;
};

constexpr const char* kFix = "set data.next_sentence to false";

TEST_F(EpochCheckTest, AcceptsOrdinaryText) {
  make({corpus::sample_documents(40, 1)});
  EXPECT_EQ(refused(), "(no error)");
  EXPECT_THAT(warnings(), IsEmpty());
  EXPECT_THAT(held_out_warnings(), IsEmpty());
  EXPECT_THAT(describe_epoch(figures_),
              AllOf(HasSubstr("samples with 9"), HasSubstr("% of the second texts continue"),
                    Not(HasSubstr("in pieces"))));
}

TEST_F(EpochCheckTest, RefusesDocumentsOfOneSentence) {
  make({Documents(60, {12})});
  EXPECT_THAT(refused(), AllOf(HasSubstr("store1: each of its 60 documents is one sentence"),
                               HasSubstr("all next-sentence labels are 1"), HasSubstr(kFix)));
  EXPECT_THAT(
      held_out_warnings(),
      ElementsAre(AllOf(HasSubstr("each of its 60 documents is one sentence"),
                        HasSubstr("say little about the model"), HasSubstr("--no-next-sentence"))));
  make({Documents(60, {12})}, {.next_sentence = false});
  EXPECT_EQ(refused(), "(no error)");
  EXPECT_THAT(warnings(), IsEmpty());
  EXPECT_THAT(held_out_warnings(), IsEmpty());
}

// A sentence of one token more is read in pieces, one of which can follow another.
TEST_F(EpochCheckTest, RefusesSentencesThatFillASequenceExactly) {
  make({Documents(60, {125, 125, 125})});
  EXPECT_THAT(refused(), AllOf(HasSubstr("leave no room for a second one in sequences of 128"),
                               HasSubstr(kFix)));
  make({Documents(60, {126, 126, 126})});
  EXPECT_EQ(refused(), "(no error)");
}

TEST_F(EpochCheckTest, WarnsOfOneStoreWithoutContinuationsAmongOthers) {
  make({corpus::sample_documents(40, 1), Documents(60, {12})});
  EXPECT_EQ(refused(), "(no error)");
  EXPECT_THAT(warnings(), ElementsAre(AllOf(HasSubstr("store2: each of its 60 documents"),
                                            HasSubstr("little to learn"), HasSubstr(kFix))));
}

TEST_F(EpochCheckTest, WarnsOfRareContinuations) {
  Documents documents(300, {12});
  documents.insert(documents.end(), 20, {12, 9});
  make({documents});
  EXPECT_EQ(refused(), "(no error)");
  EXPECT_THAT(warnings(), ElementsAre(AllOf(HasSubstr("% of its samples have a second text that "
                                                      "continues the first"),
                                            HasSubstr(kFix))));
}

TEST_F(EpochCheckTest, RefusesOneShortDocumentAndWarnsOfALongOne) {
  make({{corpus::SampleDocument(99, 12)}});
  EXPECT_THAT(refused(), AllOf(HasSubstr("is one document of 99 sentences"),
                               HasSubstr("1 in 99 is the true continuation"), HasSubstr(kFix)));
  EXPECT_THAT(held_out_warnings(), ElementsAre(HasSubstr("is one document")));
  make({{corpus::SampleDocument(100, 12)}});
  EXPECT_EQ(refused(), "(no error)");
  EXPECT_THAT(warnings(), ElementsAre(AllOf(HasSubstr("another place of the same document"),
                                            HasSubstr("as several documents"))));
  // Pieces of one long sentence count.
  make({{{20000}}});
  EXPECT_EQ(refused(), "(no error)");
  make({{corpus::SampleDocument(99, 12)}}, {.next_sentence = false});
  EXPECT_EQ(refused(), "(no error)");
}

TEST_F(EpochCheckTest, WarnsOfTextThatIsNotRead) {
  // Two sentences of 100 tokens overflow a sequence of 128 by 74.
  make({Documents(60, {100, 100, 100, 100})}, {.next_sentence = false});
  EXPECT_THAT(warnings(), ElementsAre(AllOf(HasSubstr("an epoch reads 6"),
                                            HasSubstr("a longer data.sequence_length"))));
  make({Documents(60, {100, 100, 100, 100})}, {.sequence_length = 512, .next_sentence = false});
  EXPECT_THAT(warnings(), IsEmpty());
}

TEST_F(EpochCheckTest, TextWithoutSentenceEndsIsReadInPieces) {
  make({Documents(8, {3000})});
  EXPECT_EQ(refused(), "(no error)");
  EXPECT_THAT(warnings(), IsEmpty());
  EXPECT_THAT(describe_epoch(figures_),
              HasSubstr("sentences longer than a sequence, 100.0 % of the tokens, in pieces"));
}

}  // namespace
}  // namespace onebit::pretrain
