// Tests what a host program adds to a run (training/task_inputs.h).
#include <gmock/gmock.h>

#include <array>
#include <csignal>
#include <fstream>

#include "onebit/ground/metrics/log_line.h"
#include "tests/base/message_of.h"
#include "tests/pretrain/pretraining_runs.h"

namespace onebit::pretrain {
namespace {

constexpr const char* kRecipe = R"({
  "train_batch_size": 4, "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
  "model": {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
            "intermediate_size": 64, "max_position_embeddings": 32},
  "data": {"sequence_length": 32, "evaluation_samples": 8},
  "run": {"steps": 6, "evaluate_every": 3}})";

class HostTest : public PretrainingRuns {
 protected:
  // Trains on two ranks; `host_of` gives a rank its host.
  std::array<training::RunSummary, 2> train_with(
      const PretrainingOptions& options, const std::function<training::RunHost(int)>& host_of) {
    std::array<training::RunSummary, 2> summaries;
    comm::run_thread_world(2, [&](comm::Communicator& communicator) {
      Context context = Context::cpu(1);
      PretrainingOptions own = options;
      own.host = host_of(communicator.rank());
      summaries.at(static_cast<size_t>(communicator.rank())) =
          run_pretraining(context, own, communicator);
    });
    return summaries;
  }
};

TEST_F(HostTest, GetsTheLinesOfTheLogOnEveryRank) {
  std::array<std::vector<Json>, 2> lines;
  const auto summaries = train_with(options_of(kRecipe, "run"), [&](int rank) {
    return training::RunHost{.on_line = [&, rank](const Json& line) {
      lines.at(static_cast<size_t>(rank)).push_back(line);
    }};
  });
  EXPECT_TRUE(summaries[0].finished);
  std::vector<Json> written;
  std::ifstream file(corpus_.folder("run") / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) written.push_back(Json::parse(line));
  EXPECT_EQ(lines[0], written);
  ASSERT_EQ(lines[1].size(), 9u);  // 6 steps, evaluations of 0, 3 and 6 steps
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(lines[1][i]["step"], written[i]["step"]);
    EXPECT_EQ(lines[1][i].value("loss", Json()), written[i].value("loss", Json()));
    EXPECT_EQ(lines[1][i].value("held_out", Json()), written[i].value("held_out", Json()));
  }
}

TEST_F(HostTest, OfAnyRankEndsTheRunOnAll) {
  const PretrainingOptions options = options_of(kRecipe, "run");
  const auto summaries = train_with(options, [&](int rank) {
    return training::RunHost{.should_stop = [rank, steps = 0]() mutable {
      ++steps;
      return rank == 1 && steps == 2;
    }};
  });
  for (const training::RunSummary& summary : summaries) {
    EXPECT_FALSE(summary.finished);
    EXPECT_EQ(summary.steps, 2);
  }
  PretrainingOptions resumed = options;
  resumed.resume = true;
  train(resumed, 2);
  train(options_of(kRecipe, "whole"), 2);
  EXPECT_EQ(losses("run"), losses("whole"));
}

TEST_F(HostTest, ThatFailsEndsTheRunOnAll) {
  const PretrainingOptions options = options_of(kRecipe, "run");
  EXPECT_THAT(message_of([&] {
                train_with(options, [](int rank) {
                  return training::RunHost{.on_line = [rank](const Json& line) {
                    require(rank != 1 || line["step"] != 4, "no more lines");
                  }};
                });
              }),
              testing::HasSubstr("no more lines"));
  PretrainingOptions resumed = options;
  resumed.resume = true;
  train(resumed, 2);  // the folder is not locked
  EXPECT_EQ(losses("run").size(), 6u);
}

TEST_F(HostTest, KeepsItsHandlersOfSignals) {
  for (const bool handles : {false, true}) {
    const auto before = std::signal(SIGTERM, SIG_IGN);
    PretrainingOptions options = options_of(kRecipe, handles ? "handled" : "ignored");
    options.recipe.values["run"]["steps"] = 1;
    bool is_kept = false;
    options.host.handles_signals = handles;
    options.host.on_line = [&](const Json& line) {
      if (metrics::log_line::kind_of(line) != metrics::log_line::Kind::kStep) return;
      struct sigaction action {};
      sigaction(SIGTERM, nullptr, &action);
      is_kept = action.sa_handler == SIG_IGN;
    };
    train(options);
    EXPECT_EQ(is_kept, !handles);
    std::signal(SIGTERM, before);
  }
}

}  // namespace
}  // namespace onebit::pretrain
