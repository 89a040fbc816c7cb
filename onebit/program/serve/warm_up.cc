#include "onebit/program/serve/warm_up.h"

#include <algorithm>
#include <set>
#include <string>

#include "onebit/training/training/device_batch.h"

namespace onebit::serve {

int64_t warm_up(Endpoints& endpoints) {
  constexpr int64_t kMostTokens = 512;
  const int64_t most = std::min(kMostTokens, endpoints.max_sequence_length());
  std::set<int64_t> known;
  int64_t texts = 0, tokens = 0;
  // Words of about one token, so that no number of rows is left out: a text is asked for if the
  // one before says that it may have another one.
  for (std::string text = "a"; tokens < most && std::ssize(text) <= 2 * kMostTokens; text += " a") {
    if (tokens > 0 && known.contains(training::row_class(++tokens))) continue;
    CallFigures figures;
    const RequestBody body(endpoints.sample(text), "");
    endpoints.answer(endpoints.main_path(), {}, body, figures);
    tokens = figures.tokens;
    known.insert(training::row_class(tokens));
    ++texts;
  }
  return texts;
}

}  // namespace onebit::serve
