// `onebit prepare --from hdf5|tfrecord` on the command line.
#include <gtest/gtest.h>

#include "onebit/ground/base/file.h"
#include "tests/base/temporary_folder.h"
#include "tests/cli/program.h"

namespace onebit {
namespace {

const std::string kGolden = std::string(ONEBIT_SOURCE_DIR) + "/tests/samples/golden/";

class PrepareSamples : public testing::Test {
 protected:
  std::string store(const std::string& name) const { return (folder_ / name).string(); }
  Outcome prepare(const std::string& from, const std::string& input,
                  const std::string& name) const {
    return run(fmt::format("prepare --from {} --input '{}' --vocab {}vocab.txt --output {}", from,
                           input, kGolden, store(name)));
  }

  TemporaryFolder folder_;
};

TEST_F(PrepareSamples, TrainsFromGooglesExamples) {
  const Outcome prepared = prepare("tfrecord", kGolden + "google.tfrecord", "store");
  ASSERT_EQ(prepared.status, 0) << prepared.output;
  EXPECT_TRUE(contains(prepared.output, "a sample store")) << prepared.output;
  EXPECT_TRUE(contains(prepared.output, "examples            16")) << prepared.output;
  write_file_atomically(folder_ / "r.json", R"({
      "train_batch_size": 4, "optimizer": {"type": "Adam", "params": {"lr": 1e-3}},
      "model": {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
                "intermediate_size": 64, "max_position_embeddings": 32},
      "data": {"sequence_length": 24}, "run": {"steps": 6}})");
  const Outcome trained =
      run(fmt::format("pretrain --recipe {} --data {} --valid {} --output {} --device cpu",
                      store("r.json"), store("store"), store("store"), store("run")));
  EXPECT_EQ(trained.status, 0) << trained.output;
  EXPECT_TRUE(contains(trained.output, "16 samples")) << trained.output;
  const Outcome launched = run(
      fmt::format("launch --hosts localhost --ranks-per-host 1 -- pretrain --recipe {} --data {} "
                  "--output {} --device cpu",
                  store("r.json"), store("store"), store("launched")));
  EXPECT_EQ(launched.status, 0) << launched.output;
  const Outcome inspected = run("inspect --verify --statistics " + store("store"));
  EXPECT_EQ(inspected.status, 0) << inspected.output;
  EXPECT_TRUE(contains(inspected.output, "sample statistics")) << inspected.output;
}

// Three shards of a pattern, or the message of a build without HDF5.
TEST_F(PrepareSamples, ReadsNvidiasShards) {
  for (const char* name : {"a.hdf5", "b.hdf5", "c.hdf5"}) {
    std::filesystem::copy_file(kGolden + "nvidia.hdf5", folder_ / name);
  }
  const Outcome prepared = prepare("hdf5", store("*.hdf5"), "store");
  if (contains(prepared.output, "without HDF5")) GTEST_SKIP() << prepared.output;
  ASSERT_EQ(prepared.status, 0) << prepared.output;
  EXPECT_TRUE(contains(prepared.output, "examples            48")) << prepared.output;
}

TEST_F(PrepareSamples, WrongFilesAreOneError) {
  const Outcome outcome = prepare("tfrecord", kGolden + "nvidia.hdf5", "store");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_TRUE(contains(outcome.output, "is not a TFRecord file")) << outcome.output;
  EXPECT_EQ(folder_.entries(), 0);
}

TEST_F(PrepareSamples, OptionsOfTextAreRefused) {
  for (const WrongUse& wrong :
       {WrongUse{"prepare --from hdf5 -i x -o y", "onebit prepare", "--vocab"},
        {"prepare --from hdf5 -i x -o y --vocab v --format lines", "onebit prepare", "--format"},
        {"prepare --from hdf5 -i x -o y --vocab v --drop-duplicates", "onebit prepare",
         "--drop-duplicates"},
        {"prepare --from hdf5 -i x -o y --vocab v --skip-bad-records", "onebit prepare",
         "--skip-bad-records"},
        {"prepare --from parquet -i x -o y --vocab v", "onebit prepare", "--from"}}) {
    expect_usage_error(wrong);
  }
}

}  // namespace
}  // namespace onebit
