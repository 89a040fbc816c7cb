#include "onebit/data/batches/masking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "onebit/data/tokenizer_files/tokenizer_files.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/corpus/sample_store.h"

namespace onebit::batches {
namespace {

constexpr int32_t kCls = 2, kSep = 3, kMask = 4;

// [CLS] 60 words [SEP] 65 words [SEP].
Batch sample_sequence(int32_t first_word = corpus::kFirstWord) {
  Batch batch;
  batch.clear();
  batch.tokens.push_back(kCls);
  for (int32_t i = 0; i < 125; ++i) {
    if (i == 60) batch.tokens.push_back(kSep);
    batch.tokens.push_back(first_word + i);
  }
  batch.tokens.push_back(kSep);
  return batch;
}

// The counts that Python's round() gives (halves to even).
TEST(PredictionCount, RoundsHalvesToEven) {
  for (const auto& [length, count] :
       {std::pair{30, 4}, {50, 8}, {90, 14}, {110, 16}, {10, 2}, {5, 1}, {3, 1}, {128, 19}}) {
    EXPECT_EQ(prediction_count(length, 0.15, 100), count) << length;
  }
  EXPECT_EQ(prediction_count(512, 0.15, 20), 20);
  EXPECT_EQ(prediction_count(512, 0.15, 80), 77);
}

TEST(Masker, HidesTheRightNumberAndKeepsTheTargets) {
  const Masker masker(corpus::sample_vocabulary(1000), {});
  for (uint64_t index = 0; index < 200; ++index) {
    const Batch before = sample_sequence();
    Batch batch = before;
    RandomSequence random(1, 1, index);
    masker.mask(random, 0.15, 0, batch);
    ASSERT_EQ(batch.labelled(), 19);
    ASSERT_TRUE(std::is_sorted(batch.labelled_rows.begin(), batch.labelled_rows.end()));
    ASSERT_EQ(std::set<int32_t>(batch.labelled_rows.begin(), batch.labelled_rows.end()).size(),
              19u);
    Batch restored = batch;
    for (size_t i = 0; i < 19; ++i) {
      const auto row = static_cast<size_t>(batch.labelled_rows[i]);
      ASSERT_TRUE(before.tokens[row] != kCls && before.tokens[row] != kSep);
      ASSERT_EQ(batch.row_labels[i], before.tokens[row]);
      restored.tokens[row] = batch.row_labels[i];
    }
    ASSERT_EQ(restored.tokens, before.tokens);
  }
}

TEST(Masker, WorksOnTheLastSequenceAlone) {
  const Masker masker(corpus::sample_vocabulary(1000), {});
  Batch batch = sample_sequence();
  const Batch second = sample_sequence(200);
  const auto first_row = batch.rows();
  batch.tokens.insert(batch.tokens.end(), second.tokens.begin(), second.tokens.end());
  RandomSequence random(1, 1, 5), again(1, 1, 5);
  masker.mask(random, 0.15, first_row, batch);
  Batch alone = second;
  masker.mask(again, 0.15, 0, alone);
  ASSERT_EQ(batch.labelled(), alone.labelled());
  for (size_t i = 0; i < alone.labelled_rows.size(); ++i) {
    EXPECT_EQ(batch.labelled_rows[i], alone.labelled_rows[i] + first_row);
    EXPECT_EQ(batch.row_labels[i], alone.row_labels[i]);
  }
}

// Every bound below is six standard deviations of the binomial count.
TEST(Masker, ReplacesEightyTenTenAndChoosesUniformly) {
  constexpr int kTimes = 4000, kChosen = kTimes * 19;
  const Masker masker(corpus::sample_vocabulary(1000), {});
  const Batch before = sample_sequence();
  double hidden = 0, kept = 0, changed = 0;
  std::vector<double> chosen(before.tokens.size(), 0);
  std::vector<double> drawn(1000, 0);
  for (uint64_t index = 0; index < kTimes; ++index) {
    Batch batch = before;
    RandomSequence random(3, 1, index);
    masker.mask(random, 0.15, 0, batch);
    for (const int32_t row : batch.labelled_rows) {
      const auto at = static_cast<size_t>(row);
      chosen[at] += 1;
      const int32_t token = batch.tokens[at];
      hidden += token == kMask;
      kept += token == before.tokens[at];
      if (token == kMask || token == before.tokens[at]) continue;
      changed += 1;
      drawn[static_cast<size_t>(token)] += 1;
    }
  }
  const auto spread = [](double n, double p) { return 6 * std::sqrt(n * p * (1 - p)); };
  EXPECT_NEAR(hidden, 0.8 * kChosen, spread(kChosen, 0.8));
  // A random draw hits the token itself once in 993 times.
  EXPECT_NEAR(kept, (0.1 + 0.1 / 993) * kChosen, spread(kChosen, 0.1));
  EXPECT_NEAR(changed, (0.1 - 0.1 / 993) * kChosen, spread(kChosen, 0.1));
  for (size_t row = 0; row < chosen.size(); ++row) {
    if (before.tokens[row] == kCls || before.tokens[row] == kSep) {
      EXPECT_EQ(chosen[row], 0);
    } else {
      EXPECT_NEAR(chosen[row], kTimes * 19.0 / 125, spread(kTimes, 19.0 / 125)) << row;
    }
  }
  for (size_t id = 0; id < static_cast<size_t>(corpus::kFirstWord); ++id)
    EXPECT_EQ(drawn[id], 0) << id;
  const double a_token = changed / 993;
  for (size_t id = corpus::kFirstWord; id < drawn.size(); ++id) {
    EXPECT_LT(drawn[id], a_token + 8 * std::sqrt(a_token)) << id;
  }
}

TEST(Masker, WholeWordsAreHiddenTogether) {
  // Words of one piece, then words with a continuation: ids divisible by 5 continue.
  const text::Vocabulary vocabulary = corpus::sample_vocabulary(1000, true);
  const Masker masker(vocabulary, {.whole_words = true});
  double chosen = 0;
  for (uint64_t index = 0; index < 500; ++index) {
    const Batch before = sample_sequence();
    Batch batch = before;
    RandomSequence random(5, 1, index);
    masker.mask(random, 0.15, 0, batch);
    ASSERT_LE(batch.labelled(), 19);
    ASSERT_TRUE(std::is_sorted(batch.labelled_rows.begin(), batch.labelled_rows.end()));
    const std::set<int32_t> rows(batch.labelled_rows.begin(), batch.labelled_rows.end());
    ASSERT_EQ(rows.size(), batch.labelled_rows.size());
    ASSERT_EQ(batch.row_labels.size(), batch.labelled_rows.size());
    chosen += static_cast<double>(rows.size());
    for (int32_t row = 1; row < static_cast<int32_t>(before.tokens.size()); ++row) {
      const int32_t token = before.tokens[static_cast<size_t>(row)];
      const int32_t previous = before.tokens[static_cast<size_t>(row) - 1];
      if (!vocabulary.is_continuation(token) || previous == kCls || previous == kSep) continue;
      ASSERT_EQ(rows.contains(row), rows.contains(row - 1)) << row;
    }
  }
  // Single pieces abound, so the number wanted is always reached.
  EXPECT_EQ(chosen, 500 * 19);
}

// A tokenizer.json of byte pairs, whose words are `tokenizers`' word_ids (0.23).
text::Vocabulary byte_pairs(const Json& settings, const std::vector<std::string>& tokens) {
  TemporaryFolder folder;
  Json model = {{"type", "BPE"}, {"unk_token", "[UNK]"}, {"merges", Json::array()}};
  model.update(settings);
  for (const std::string& token : tokens) model["vocab"][token] = model["vocab"].size();
  Json added = Json::array();
  for (int id = 0; id < 5; ++id) {
    added.push_back({{"id", id}, {"content", tokens[static_cast<size_t>(id)]}, {"special", true}});
  }
  const Json json = {
      {"added_tokens", added}, {"pre_tokenizer", {{"type", "BertPreTokenizer"}}}, {"model", model}};
  write_file_atomically(folder / "tokenizer.json", json_text(json));
  return text::Vocabulary::from_parts(
      formats::read_tokenizer_alone(folder / "tokenizer.json").vocabulary, "test");
}

// CLIP's form: a token without "</w>" goes on in the next one.
TEST(Masker, WordsOfTokensThatMarkTheirEnd) {
  const text::Vocabulary vocabulary =
      byte_pairs({{"end_of_word_suffix", "</w>"}},
                 {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "h", "e", "l", "o</w>", "he", "ll",
                  "hell", "hello</w>", "a</w>", "b", "c</w>", ",</w>", "o", "a"});
  // "hello bc, helc a [MASK] ba"
  const std::vector<int32_t> ids = {12, 14, 15, 16, 9, 7, 15, 13, kMask, 14, 13};
  const std::vector<int> words = {0, 1, 1, 2, 3, 3, 3, 4, 5, 6, 6};
  const Masker masker(vocabulary, {.whole_words = true});
  std::vector<int> chosen(words.size());
  for (uint64_t index = 0; index < 500; ++index) {
    Batch batch;
    batch.clear();
    batch.tokens.push_back(kCls);
    batch.tokens.insert(batch.tokens.end(), ids.begin(), ids.end());
    batch.tokens.push_back(kSep);
    RandomSequence random(5, 1, index);
    masker.mask(random, 0.3, 0, batch);
    const std::set<int32_t> rows(batch.labelled_rows.begin(), batch.labelled_rows.end());
    for (size_t i = 0; i < words.size(); ++i) {
      const auto row = static_cast<int32_t>(i) + 1;
      chosen[i] += rows.contains(row) ? 1 : 0;
      if (i == 0 || words[i] != words[i - 1]) continue;
      ASSERT_EQ(rows.contains(row), rows.contains(row - 1)) << i;
    }
  }
  // Neighbours of different words are chosen separately.
  for (size_t i = 0; i < words.size(); ++i) {
    EXPECT_GT(chosen[i], 50) << i;
    EXPECT_LT(chosen[i], 450) << i;
  }
  EXPECT_NE(chosen[2], chosen[3]);
  EXPECT_NE(chosen[6], chosen[7]);
}

TEST(Masker, WordsOfTokensThatShowNone) {
  const std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"};
  const text::Vocabulary bare = byte_pairs(Json::object(), tokens);
  EXPECT_THAT(message_of([&] { Masker(bare, {.whole_words = true}); }),
              testing::HasSubstr("do not show where words begin"));
  EXPECT_EQ(message_of([&] { Masker(bare, {}); }), "(no error)");
  const text::Vocabulary prefixed =
      byte_pairs({{"continuing_subword_prefix", "##"}},
                 {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b"});
  EXPECT_TRUE(prefixed.is_continuation(6));
  EXPECT_FALSE(prefixed.is_continuation(5));
}

TEST(Masker, TakesWhatThereIs) {
  const Masker masker(corpus::sample_vocabulary(100), {.probability = 0.9});
  Batch batch;
  batch.clear();
  batch.tokens = {kCls, 10, kSep, 11, kSep};
  RandomSequence random(1, 1, 1);
  masker.mask(random, 0.9, 0, batch);
  EXPECT_EQ(batch.labelled_rows, (std::vector<int32_t>{1, 3}));
}

TEST(Masker, RefusesOptionsOutOfRange) {
  EXPECT_THROW(check(MaskOptions{.probability = 0}), Error);
  EXPECT_THROW(check(MaskOptions{.probability = 1}), Error);
  EXPECT_THROW(check(MaskOptions{.max_predictions = 0}), Error);
}

TEST(Masker, ReplacesByWhatOtherTokenizersCallNoSpecialToken) {
  const Path file = Path(ONEBIT_SOURCE_DIR) / "tests/formats/golden/pipelines/bytes/tokenizer.json";
  const text::Vocabulary vocabulary =
      text::Vocabulary::from_parts(formats::read_tokenizer_with(file).vocabulary, file.string());
  std::set<int32_t> special = {vocabulary.unknown_id(), vocabulary.cls_id(), vocabulary.sep_id(),
                               vocabulary.pad_id()};
  const int32_t brackets = vocabulary.find("]").value();
  const Masker masker(vocabulary, {.probability = 0.9, .max_predictions = 1000});
  std::set<int32_t> seen;
  for (uint64_t index = 0; index < 400; ++index) {
    Batch batch;
    batch.clear();
    batch.tokens.assign(200, brackets);
    batch.tokens.front() = vocabulary.cls_id();
    batch.tokens.back() = vocabulary.sep_id();
    RandomSequence random(7, 1, index);
    masker.mask(random, 0.9, 0, batch);
    for (size_t row = 1; row + 1 < batch.tokens.size(); ++row) seen.insert(batch.tokens[row]);
  }
  EXPECT_TRUE(seen.erase(vocabulary.mask_id()) == 1);
  for (const int32_t id : special) EXPECT_FALSE(seen.contains(id)) << vocabulary.token(id);
  // 7,200 draws from some 700 tokens.
  EXPECT_GT(seen.size(), static_cast<size_t>(vocabulary.size()) * 9 / 10);
}

}  // namespace
}  // namespace onebit::batches
