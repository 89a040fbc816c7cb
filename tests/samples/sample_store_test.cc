#include "onebit/data/samples/sample_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/samples/golden_samples.h"
#include "tests/samples/quick_file.h"

namespace onebit::samples {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr const char* kFiles[] = {kTokensName, kSequencesName, kPairsName,
                                  kMaskedName, kPositionsName, kTargetsName};

class SampleStoreTest : public testing::Test {
 protected:
  SampleStoreTest() : path_(folder_ / "store") { write(path_, golden_vocabulary()); }

  static void write(const Path& path, const text::Vocabulary& vocabulary) {
    SampleWriter writer(path, vocabulary, text::Casing::kUncased, false);
    for (const Sample& sample : golden_samples()) writer.add(sample, "somewhere");
    writer.finish("golden", {"a", "b"});
  }
  static std::vector<std::string> words_in(const Path& path) {
    const SampleStore store(path);
    std::vector<std::string> words;
    Sample sample;
    for (uint64_t index = 0; index < store.samples(); ++index) {
      store.read(index, sample);
      words.push_back(in_words(sample));
    }
    return words;
  }

  TemporaryFolder folder_;
  Path path_;
};

TEST_F(SampleStoreTest, GivesBackWhatWasWritten) {
  EXPECT_EQ(words_in(path_), golden_words());
  const SampleStore store(path_);
  uint64_t tokens = 0, masked = 0, longest = 0, most = 0;
  for (const Sample& sample : golden_samples()) {
    tokens += sample.tokens.size();
    masked += sample.masked_ids.size();
    longest = std::max(longest, sample.tokens.size());
    most = std::max(most, sample.masked_ids.size());
  }
  const SampleManifest& manifest = store.manifest();
  EXPECT_EQ(manifest.tokens, tokens);
  EXPECT_EQ(manifest.masked, masked);
  EXPECT_EQ(manifest.longest_tokens, longest);
  EXPECT_EQ(manifest.most_masked, most);
  EXPECT_EQ(manifest.pairs, 16u);
  EXPECT_EQ(manifest.labels, 16u);
  EXPECT_EQ(manifest.random_next, 8u);
  EXPECT_EQ(manifest.source_count, 2u);
  EXPECT_TRUE(is_sample_store(path_));
  EXPECT_FALSE(is_sample_store(folder_.path()));
  store.verify();
}

TEST_F(SampleStoreTest, WritesLargeVocabulariesInFourBytes) {
  std::vector<std::string> tokens;
  for (int32_t id = 0; id < golden_vocabulary().size(); ++id) {
    tokens.push_back(golden_vocabulary().token(id));
  }
  for (int extra = 0; extra < 65536; ++extra) tokens.push_back(fmt::format("x{}", extra));
  write(folder_ / "wide", text::Vocabulary::from_tokens(tokens, "wide"));
  EXPECT_EQ(SampleStore(folder_ / "wide").manifest().token_size_bytes, 4);
  EXPECT_EQ(words_in(folder_ / "wide"), golden_words());
}

TEST_F(SampleStoreTest, CountsWhatMaskedWordsShow) {
  uint64_t kept = 0, replaced = 0;
  for (const Sample& sample : golden_samples()) {
    for (size_t i = 0; i < sample.masked_ids.size(); ++i) {
      const int32_t shown = sample.tokens[static_cast<size_t>(sample.masked_positions[i])];
      if (shown == sample.masked_ids[i]) {
        ++kept;
      } else if (shown != golden_vocabulary().mask_id()) {
        ++replaced;
      }
    }
  }
  const SampleStore store(path_);
  const SampleStatistics found = statistics_of(store);
  EXPECT_GT(kept + replaced, 0u);
  EXPECT_EQ(found.kept, kept);
  EXPECT_EQ(found.replaced, replaced);
  EXPECT_EQ(store.manifest().replaced_by_mask, store.manifest().masked - kept - replaced);
  EXPECT_EQ(found.sample_tokens.longest, store.manifest().longest_tokens);
  EXPECT_EQ(found.sample_masked.longest, store.manifest().most_masked);
}

// Whichever byte is changed, verify() detects it. Reading without verify() gives an error or other
// samples, but no undefined behaviour.
TEST_F(SampleStoreTest, OneErrorForEveryChangedByte) {
  for (const char* name : kFiles) {
    const std::string before = read_file(path_ / name);
    for (size_t at = 0; at < before.size(); ++at) {
      std::string changed = before;
      changed[at] = static_cast<char>(changed[at] ^ 0x80);
      write_quickly(path_ / name, changed);
      EXPECT_THAT(message_of([&] { words_in(path_); }),
                  AnyOf("(no error)", HasSubstr(name), HasSubstr("store")));
      EXPECT_THAT(message_of([&] { SampleStore(path_).verify(); }), HasSubstr(name))
          << name << " " << at;
    }
    write_quickly(path_ / name, before.substr(1));
    EXPECT_THAT(message_of([&] { SampleStore store(path_); }), HasSubstr("truncated"));
    write_quickly(path_ / name, before);
  }
}

TEST_F(SampleStoreTest, NoticesADamagedManifest) {
  const std::string before = read_file(path_ / corpus::kManifestName);
  const auto after = [&](const std::string& from, const std::string& to) {
    std::string text = before;
    text.replace(text.find(from), from.size(), to);
    write_quickly(path_ / corpus::kManifestName, text);
    return message_of([&] { SampleStore store(path_); });
  };
  EXPECT_THAT(after("\"random_next\": 8,", "\"random_next\": -8,"), HasSubstr("non-negative"));
  EXPECT_THAT(after("\"tokens\": 2", "\"tokens\": 3"), HasSubstr("truncated or modified"));
  EXPECT_THAT(after("\"samples\": 16", "\"samples\": 0"), HasSubstr("counts are invalid"));
  EXPECT_THAT(after("\"version\": 1", "\"version\": 2"), HasSubstr("prepare its files again"));
  EXPECT_THAT(after("onebit sample store", "onebit token store"),
              HasSubstr("is not the manifest of a sample store"));
  EXPECT_THAT(after("\"vocabulary_size\": 60", "\"vocabulary_size\": 61"),
              HasSubstr("is not the vocabulary"));
}

TEST_F(SampleStoreTest, IsWrittenWholeOrNotAtAll) {
  EXPECT_THAT(message_of([&] { write(path_, golden_vocabulary()); }), HasSubstr("--overwrite"));
  const auto unfinished = [&] {
    SampleWriter writer(folder_ / "new", golden_vocabulary(), text::Casing::kUncased, false);
    writer.finish("golden", {"a.hdf5"});
  };
  EXPECT_THAT(message_of(unfinished), HasSubstr("a.hdf5: no example was found"));
  EXPECT_EQ(folder_.entries(), 1);
}

TEST_F(SampleStoreTest, SamplesHaveLabelsAllOrNone) {
  SampleWriter writer(folder_ / "new", golden_vocabulary(), text::Casing::kUncased, false);
  Sample sample = golden_samples().front();
  writer.add(sample, "a: row 0");
  sample.next_sentence = kNoLabel;
  EXPECT_THAT(message_of([&] { writer.add(sample, "b: row 0"); }),
              HasSubstr("b: row 0: has no next_sentence_labels, but earlier samples have"));
}

}  // namespace
}  // namespace onebit::samples
