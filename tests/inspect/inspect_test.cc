#include "onebit/program/inspect/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/ground/base/json.h"
#include "onebit/program/inspect/task_list.h"
#include "onebit/training/training/training_loop.h"
#include "tests/base/damage.h"
#include "tests/base/message_of.h"
#include "tests/finetune/small_corpus.h"

namespace onebit::inspect {
namespace {

using ::testing::HasSubstr;

using KeySet = std::set<std::string>;

// The keys that docs/inspect.md documents.
const KeySet kStoreKeys = {"kind",
                           "path",
                           "version",
                           "documents",
                           "sentences",
                           "tokens",
                           "vocabulary",
                           "files",
                           "text_bytes",
                           "format",
                           "token_size_bytes",
                           "source_count",
                           "sources",
                           "verified",
                           "duplicate_documents",
                           "statistics"};
const KeySet kModelKeys = {"kind",
                           "path",
                           "architecture",
                           "casing",
                           "layers",
                           "hidden_size",
                           "heads",
                           "max_positions",
                           "vocab_size",
                           "pre_layer_norm",
                           "intermediate_size",
                           "parameters",
                           "tensors",
                           "verified"};
const KeySet kCheckpointKeys = {"kind",    "path",  "step",     "ranks",
                                "samples", "state", "verified", "model"};
const KeySet kRunKeys = {"kind", "path", "checkpoints", "latest", "verified", "model"};
const KeySet kRecipeKeys = {"kind",  "path",    "task",      "batch",     "ranks",
                            "steps", "compute", "optimizer", "scheduler", "notices"};

KeySet keys_of(const Json& object) {
  KeySet keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

KeySet with(KeySet keys, const KeySet& more) {
  keys.insert(more.begin(), more.end());
  return keys;
}

class InspectTest : public testing::Test {
 protected:
  Path written(const std::string& name, const Json& recipe) const {
    const Path path = corpus_.folder(name);
    write_file_atomically(path, recipe.dump());
    return path;
  }

  // The folder of a run of two steps.
  Path trained() const;

  finetune::SmallCorpus corpus_;
};

const Json kRecipe = {{"train_batch_size", 4},
                      {"optimizer", {{"type", "Adam"}, {"params", {{"lr", 1e-3}}}}},
                      {"scheduler", {{"type", "WarmupLR"}, {"params", {{"warmup_num_steps", 4}}}}},
                      {"model",
                       {{"hidden_size", 32},
                        {"num_hidden_layers", 2},
                        {"num_attention_heads", 2},
                        {"intermediate_size", 64},
                        {"max_position_embeddings", 32}}},
                      {"data", {{"sequence_length", 32}, {"max_predictions_per_sequence", 5}}},
                      {"run", {{"steps", 2}}}};

Path InspectTest::trained() const {
  training::RunOptions options;
  options.recipe = {.values = kRecipe, .place = "recipe"};
  options.output = corpus_.folder("run");
  options.quiet = true;
  Context context = Context::cpu(1);
  const auto communicator = comm::make_single_rank();
  training::make_and_train(context, make_task, options,
                           {.model = {}, .train = {{corpus_.train(), 0.0}}, .dev = {}},
                           *communicator);
  return options.output;
}

TEST_F(InspectTest, ATokenStore) {
  const Json store = inspect(corpus_.train(), {});
  EXPECT_EQ(keys_of(store), kStoreKeys);
  EXPECT_EQ(store["kind"], "token_store");
  EXPECT_EQ(store["documents"], 40);
  EXPECT_EQ(store["sentences"], 40 * 12);
  EXPECT_EQ(keys_of(store["vocabulary"]), (KeySet{"size", "casing", "checksum"}));
  EXPECT_EQ(keys_of(store["files"].at(0)), (KeySet{"name", "size_bytes", "crc32"}));
  EXPECT_EQ(store["verified"], false);
  EXPECT_EQ(inspect(corpus_.train(), {.verify = true})["verified"], true);
  EXPECT_NE(inspection_text(store).find("480"), std::string::npos);
}

TEST_F(InspectTest, StatisticsOfATokenStore) {
  EXPECT_TRUE(inspect(corpus_.train(), {})["statistics"].is_null());
  const Json store = inspect(corpus_.train(), {.statistics = true});
  const Json& found = store["statistics"];
  EXPECT_EQ(found["unknown_tokens"], 0);
  EXPECT_EQ(found["tokens_in_sentences_over_512"], 0);
  EXPECT_EQ(found["share_in_sentences_over_512"], 0.0);
  // Documents of twelve sentences of at least eight words.
  EXPECT_EQ(found["document_sentences"], (Json{{"mean", 12.0}, {"median", 12}, {"longest", 12}}));
  EXPECT_GE(found["sentence_tokens"]["median"], 8);
  int64_t sentences = 0;
  for (const Json& bin : found["sentences_of_tokens"]) sentences += bin["count"].get<int64_t>();
  EXPECT_EQ(sentences, 480);
  EXPECT_NE(inspection_text(store).find("sentences of tokens 8 to 15"), std::string::npos)
      << inspection_text(store);
  EXPECT_THROW(inspect(written("recipe.json", kRecipe), {.statistics = true}), Error);
}

TEST_F(InspectTest, ARunItsCheckpointAndItsModel) {
  const Path output = trained();
  const Json run = inspect(output, {});
  EXPECT_EQ(keys_of(run), kRunKeys);
  EXPECT_EQ(run["kind"], "run");
  EXPECT_EQ(run["latest"], run["checkpoints"].back());
  EXPECT_EQ(keys_of(run["model"]), kModelKeys);

  const Json checkpoint = inspect(output / run["latest"].get<std::string>(), {});
  EXPECT_EQ(keys_of(checkpoint), kCheckpointKeys);
  EXPECT_EQ(checkpoint["kind"], "checkpoint");
  EXPECT_EQ(checkpoint["step"], 2);
  EXPECT_EQ(checkpoint["ranks"], 1);
  EXPECT_EQ(checkpoint["samples"], 8);
  EXPECT_EQ(keys_of(checkpoint["state"].at(0)),
            (KeySet{"name", "type", "shape", "size_bytes", "file"}));

  const Json model = inspect(Path(checkpoint["model"]["path"].get<std::string>()), {});
  EXPECT_EQ(model, checkpoint["model"]);
  EXPECT_EQ(model["layers"], 2);
  EXPECT_EQ(model["hidden_size"], 32);
  EXPECT_EQ(keys_of(model["tensors"]), (KeySet{"count", "size_bytes"}));
  for (const Json& json : {run, checkpoint, model}) {
    EXPECT_NE(inspection_text(json).find("vocab"), std::string::npos);
  }
}

TEST_F(InspectTest, VerifiesARunItsCheckpointAndItsModel) {
  const Path output = trained();
  const Json run = inspect(output, {});
  const Json checkpoint = inspect(output / run["latest"].get<std::string>(), {});
  const Json& model = checkpoint["model"];
  EXPECT_EQ(model["verified"], false);
  const Json verified = inspect(output, {.verify = true});
  EXPECT_EQ(verified["verified"], true);
  EXPECT_EQ(verified["model"]["verified"], true);
  const Path folder(checkpoint["path"].get<std::string>());
  // A blank more at the end of the last token, and a line end more.
  const std::vector<std::pair<const char*, const char*>> changes = {{"vocab.txt", " \n"},
                                                                    {"tokenizer.json", "}\n"}};
  for (const auto& [name, end] : changes) {
    const Path file = folder / "model" / name;
    const std::string text = read_file(file);
    write_file_atomically(file, text.substr(0, text.size() - 1) + end);
    EXPECT_NO_THROW(inspect(folder, {})) << name;
    EXPECT_THROW(inspect(folder, {.verify = true}), Error) << name;
    EXPECT_THROW(inspect(folder / "model", {.verify = true}), Error) << name;
    write_file_atomically(file, text);
  }
  const Path shard = folder / checkpoint["state"].at(0)["file"].get<std::string>();
  const Path elsewhere = folder / "shard";
  std::filesystem::rename(shard, elsewhere);
  EXPECT_THROW(inspect(folder, {.verify = true}), Error);
  std::filesystem::rename(elsewhere, shard);
  EXPECT_NO_THROW(inspect(folder, {.verify = true}));
  const std::string whole = read_file(shard);
  write_file_atomically(shard, read_file(folder / "model/model.safetensors"));
  EXPECT_THROW(inspect(folder, {.verify = true}), Error);
  write_file_atomically(shard, whole);
  change_last_byte(shard);
  EXPECT_EQ(inspect(output, {}), run);
  const std::string flaws = message_of([&] { inspect(output, {.verify = true}); });
  EXPECT_THAT(flaws, HasSubstr(shard.string()));
  EXPECT_THAT(
      flaws, HasSubstr(fmt::format("{} of {} checkpoints are intact", run["checkpoints"].size() - 1,
                                   run["checkpoints"].size())));
  EXPECT_THROW(inspect(folder, {.verify = true}), Error);
}

TEST_F(InspectTest, RecipesOfBothTasks) {
  const Json pretraining = inspect(written("recipe.json", kRecipe), {});
  EXPECT_EQ(keys_of(pretraining), with(kRecipeKeys, {"sequence_length", "gigaflop_a_full_sequence",
                                                     "model", "memory_without_optimizer"}));
  EXPECT_EQ(pretraining["task"], "pretrain");
  EXPECT_EQ(pretraining["batch"], (Json{{"train", 4}, {"micro", 4}, {"accumulation", 1}}));
  EXPECT_EQ(pretraining["steps"], 2);
  EXPECT_EQ(pretraining["scheduler"], kRecipe["scheduler"]);
  const Json& memory = pretraining["memory_without_optimizer"];
  ASSERT_EQ(memory.size(), 5u);
  EXPECT_LT(memory.at(4)["total_bytes"], memory.at(0)["total_bytes"]);
  EXPECT_NE(inspection_text(pretraining).find("full_recomputation"), std::string::npos);

  Json whole = kRecipe;
  whole["train_micro_batch_size_per_gpu"] = 1;
  whole["gradient_accumulation_steps"] = 2;
  const Json of_two = inspect(written("whole.json", whole), {});
  EXPECT_EQ(of_two["ranks"], 2);
  EXPECT_EQ(of_two["batch"], (Json{{"train", 4}, {"micro", 1}, {"accumulation", 2}}));

  Json recipe = kRecipe;
  recipe.erase("model");
  recipe.erase("run");
  recipe["task"] = "squad";
  recipe["data"] = {{"epochs", 3}, {"doc_stride", 64}};
  const Json squad = inspect(written("squad.json", recipe), {});
  EXPECT_EQ(keys_of(squad), with(kRecipeKeys, {"epochs", "max_sequence_length", "doc_stride"}));
  EXPECT_EQ(squad["task"], "squad");
  EXPECT_EQ(squad["epochs"], 3);
  EXPECT_TRUE(squad["steps"].is_null());
  EXPECT_NE(inspection_text(squad).find("64"), std::string::npos);
}

TEST_F(InspectTest, EveryRecipeThatIsShippedReads) {
  std::set<std::string> types;
  for (const auto& file : std::filesystem::directory_iterator(ONEBIT_SOURCE_DIR "/recipes")) {
    const Json recipe = inspect(file.path(), {});
    EXPECT_GT(recipe["batch"]["train"], 0) << file.path();
    types.insert(read_json(file.path())["optimizer"]["type"].get<std::string>());
  }
  for (const char* const type : {"AdamW", "Lamb", "OneBitAdam", "OneBitLamb", "ZeroOneAdam"}) {
    EXPECT_EQ(types.count(type), 1) << type;
  }
}

TEST_F(InspectTest, ReportsWhatItCannotInspect) {
  const auto error_of = [](const Path& path, bool verify) -> std::string {
    try {
      inspect(path, {.verify = verify});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(error_of(corpus_.train() / "vocab.txt", false).find("recipes (.json)"),
            std::string::npos);
  EXPECT_NE(error_of(written("recipe.json", kRecipe), true).find("a recipe has no checksum"),
            std::string::npos);
  std::filesystem::remove(corpus_.valid() / "manifest.json");
  EXPECT_NE(error_of(corpus_.valid(), false).find("manifest.json"), std::string::npos);
}

}  // namespace
}  // namespace onebit::inspect
