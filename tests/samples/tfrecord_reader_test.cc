#include "onebit/data/samples/tfrecord_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/samples/golden_samples.h"
#include "tests/samples/quick_file.h"
#include "tests/samples/record_file.h"

namespace onebit::samples {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The message of reading one record with these features.
std::string message_for(const std::string& features) {
  const TemporaryFolder folder;
  write_quickly(folder / "a.tfrecord", record_of(example(features)));
  return message_of([&] { words_of(*open_tfrecord(folder / "a.tfrecord")); });
}

// An example of three words, the second masked, without `left_out`.
std::string features_without(const std::string& left_out) {
  const std::pair<std::string, std::string> features[] = {
      {"input_ids", integer_list({2, 7, 4, 8, 3, 0})},
      {"input_mask", integer_list({1, 1, 1, 1, 1, 0})},
      {"segment_ids", integer_list({0, 0, 0, 0, 0, 0})},
      {"masked_lm_positions", integer_list({2, 0})},
      {"masked_lm_ids", integer_list({9, 0})},
      {"masked_lm_weights", float_list({1, 0})},
      {"next_sentence_labels", integer_list({1})}};
  std::string joined;
  for (const auto& [name, value] : features) {
    if (name != left_out) joined += feature(name, value);
  }
  return joined;
}

TEST(TfRecordReader, GivesWhatItsWriterMeant) {
  EXPECT_EQ(words_of(*open_tfrecord(golden("google.tfrecord"))), golden_words());
  EXPECT_EQ(words_of(*open_tfrecord(golden("google.tfrecord.gz"))), golden_words());
}

TEST(TfRecordReader, WhatMayBeMissing) {
  for (const char* name : {"", "input_mask", "masked_lm_weights", "next_sentence_labels"}) {
    EXPECT_EQ(message_for(features_without(name)), "(no error)") << name;
  }
}

TEST(TfRecordReader, ReportsWhatIsMissing) {
  for (const char* name : {"input_ids", "segment_ids", "masked_lm_positions", "masked_lm_ids"}) {
    EXPECT_THAT(message_for(features_without(name)),
                AllOf(HasSubstr("a.tfrecord: record 1 (byte 0)"), HasSubstr("has no feature"),
                      HasSubstr(name)));
  }
}

TEST(TfRecordReader, ReportsWhatIsOfAnotherKind) {
  EXPECT_THAT(message_for(features_without("input_ids") + feature("input_ids", float_list({1.0f}))),
              HasSubstr("feature input_ids has no integers"));
  EXPECT_THAT(message_for(features_without("masked_lm_weights") +
                          feature("masked_lm_weights", integer_list({1, 0}))),
              HasSubstr("feature masked_lm_weights has no floats"));
  EXPECT_THAT(message_for(features_without("") + feature("segment_ids", integer_list({1}))),
              HasSubstr("has the feature segment_ids twice"));
  EXPECT_THAT(message_for(features_without("next_sentence_labels") +
                          feature("next_sentence_labels", integer_list({1, 0}))),
              HasSubstr("has 2 numbers, expected 1"));
}

// Each byte of the golden file damaged, or the file cut there: one error that names it, or (cut
// between two records) the samples before.
TEST(TfRecordReader, OneErrorWhereverItIsDamaged) {
  const TemporaryFolder folder;
  const std::string bytes = read_file(golden("google.tfrecord"));
  const std::vector<std::string> all = golden_words();
  const Path path = folder / "a.tfrecord";
  size_t cut_between_records = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x21);
    write_quickly(path, changed);
    EXPECT_THAT(message_of([&] { words_of(*open_tfrecord(path)); }), HasSubstr("a.tfrecord")) << at;
    write_quickly(path, bytes.substr(0, at));
    const std::string message = message_of([&] {
      const auto found = words_of(*open_tfrecord(path));
      EXPECT_LT(found.size(), all.size());
      EXPECT_TRUE(std::equal(found.begin(), found.end(), all.begin()));
      ++cut_between_records;
    });
    if (message != "(no error)") {
      EXPECT_THAT(message, HasSubstr("a.tfrecord")) << at;
    }
  }
  EXPECT_EQ(cut_between_records, all.size());
}

}  // namespace
}  // namespace onebit::samples
