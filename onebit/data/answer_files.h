// predictions.json, nbest_predictions.json and null_odds.json as the published SQuAD programs write
// them.
#pragma once

#include <vector>

#include "onebit/base/file.h"
#include "onebit/data/answer_decoder.h"
#include "onebit/data/squad_score.h"

namespace onebit::data {

struct AnswerFiles {
  Path predictions;  // {"id": "text"}
  Path n_best;       // {"id": [{"text", "probability", "start_logit", "end_logit"}]}
  Path null_odds;    // {"id": number}; empty: not written (version 1.1)
};

// The predictions by id: decoded ones, and "" for questions of the dataset that were left out.
Predictions predictions_of(const SquadDataset& dataset, const std::vector<DecodedAnswer>& answers);

// Questions in the order of the file; those left out, with "", behind them in `predictions`. Each
// file is replaced as a whole.
void write_answers(const AnswerFiles& files, const SquadDataset& dataset,
                   const std::vector<DecodedAnswer>& answers);

}  // namespace onebit::data
