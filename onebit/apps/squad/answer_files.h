// predictions.json, nbest_predictions.json and null_odds.json as the published SQuAD programs write
// and read them.
#pragma once

#include <vector>

#include "onebit/apps/squad/answer_decoder.h"
#include "onebit/apps/squad/score.h"
#include "onebit/ground/base/file.h"

namespace onebit::squad {

struct AnswerFiles {
  Path predictions;  // {"id": "text"}
  Path n_best;       // {"id": [{"text", "probability", "start_logit", "end_logit"}]}
  Path null_odds;    // {"id": number}. Empty: not written (version 1.1)
};

// The predictions by id: decoded answers, and "" for questions of the dataset that were left out.
Predictions predictions_of(const Dataset& dataset, const std::vector<DecodedAnswer>& answers);

// Questions are in the order of the file. The ones left out follow in `predictions` with "". Each
// file is replaced as a whole.
void write_answers(const AnswerFiles& files, const Dataset& dataset,
                   const std::vector<DecodedAnswer>& answers);

// Read {"question id": "answer", ...} and {"question id": number, ...}. Error: other JSON, by id.
Predictions read_predictions(const Path& path);
NullOdds read_null_odds(const Path& path);

}  // namespace onebit::squad
