// Fine-tuning of models of every family of encoders.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/finetune/model_folders.h"

namespace onebit::finetune {

// A model of each family is trained, and its folder is then read as one. `options(name)` are the
// options of a run, and `train(options)` trains.
template <typename OptionsOf, typename Train>
void expect_every_family_trains(const Path& folder, const OptionsOf& options, const Train& train) {
  const auto vocabulary = std::make_shared<text::Vocabulary>(
      text::Vocabulary::load(Path(ONEBIT_SOURCE_DIR) / "tests/text/golden/vocab.txt"));
  for (const formats::Family& family : formats::families()) {
    const std::string name(family.model_type);
    SCOPED_TRACE(name);
    auto given = options("run of " + name);
    given.model = folder / name;
    const auto config = write_model_of(family, given.model, vocabulary);
    given.recipe.values["run"] = {{"steps", 8}, {"seed", 3}};
    train(given);
    const auto trained = training::read_model_description(given.output).config;
    EXPECT_EQ(trained.family, config.family);
    EXPECT_EQ(trained.choices, config.choices);
    EXPECT_EQ(trained.max_positions, config.max_positions);
  }
}

}  // namespace onebit::finetune
