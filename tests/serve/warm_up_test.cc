#include "onebit/program/serve/warm_up.h"

#include <set>

#include "onebit/training/training/device_batch.h"
#include "tests/serve/served_models.h"

namespace onebit::serve {
namespace {

// What the lines of a histogram of te_batch_next_tokens say.
double number_of(const std::string& metrics, const std::string& name) {
  const size_t at = metrics.find("\n" + name + " ");
  EXPECT_NE(at, std::string::npos) << name;
  return at == std::string::npos ? 0 : std::stod(metrics.substr(at + name.size() + 2));
}

class WarmUp : public ServiceTest {
 protected:
  // A model of the folder is asked for a text of each number of rows, from the shortest on.
  void expect_texts(const std::string& name, const std::string& kind, int64_t shortest) {
    Context context = Context::cpu(1);
    Metrics metrics;
    const auto endpoints = load_endpoints(context, at(name), options_.endpoints, metrics);
    EXPECT_EQ(endpoints->kind(), kind);
    const int64_t longest = endpoints->max_sequence_length();
    std::set<int64_t> classes;
    for (int64_t tokens = shortest; tokens <= longest; ++tokens) {
      classes.insert(training::row_class(tokens));
    }
    const int64_t texts = warm_up(*endpoints);
    EXPECT_EQ(texts, std::ssize(classes)) << name;
    EXPECT_EQ(number_of(metrics.text(0), "te_batch_next_size_sum"), texts)
        << "each text is one sequence";
    EXPECT_GT(number_of(metrics.text(0), "te_batch_next_tokens_sum"), longest) << name;
  }
};

TEST_F(WarmUp, AsksEveryKindOfModelForEveryNumberOfRows) {
  write_small_encoder(at("embed"));
  expect_texts("embed", "embedding", 3);
  write_small_classifier(at("moods"), {"sad", "glad"});
  expect_texts("moods", "classifier", 3);
  write_small_classifier(at("rank"), {"score"});
  expect_texts("rank", "reranker", 5);
  write_small_tagger(at("tags"));
  expect_texts("tags", "tagger", 3);
  write_small_reader(at("answers"));
  expect_texts("answers", "answers", 5);
  write_small_filler(at("words"));
  expect_texts("words", "masked words", 4);
}

}  // namespace
}  // namespace onebit::serve
