// Requests of HTTP as a client of `onebit serve` sends them, and the JSON in them. The first byte
// is the size of the pieces in which the others arrive. A text that begins with "{" is a body.
#include <cstdlib>
#include <vector>

#include "onebit/program/serve/http_message.h"
#include "onebit/program/serve/request_body.h"
#include "tests/fuzz/fuzz_input.h"

using namespace onebit;
using namespace onebit::serve;

namespace {

constexpr HttpLimits kLimits = {.head_bytes = 512, .headers = 8, .body_bytes = 1024};

struct Arrived {
  std::vector<HttpRequest> requests;
  int status = 0;
  bool is_begun = false;
};

Arrived requests_in(std::string_view text, size_t piece_bytes) {
  Arrived arrived;
  RequestReader reader(kLimits);
  try {
    while (!text.empty()) {
      const size_t size = std::min(piece_bytes, text.size());
      const size_t used = reader.add(text.substr(0, size));
      if (used > size || (used < size && !reader.is_complete())) std::abort();
      text.remove_prefix(used);
      if (reader.is_complete()) arrived.requests.push_back(reader.take());
    }
    arrived.is_begun = reader.is_begun();
  } catch (const HttpError& error) {
    arrived.status = error.status();
    if (reason_phrase(error.status()) == "Unknown") std::abort();
  }
  return arrived;
}

template <typename Read>
void expect_api_error_at_most(const Read& read) {
  try {
    read();
  } catch (const ApiError& error) {
    if (error_reply("/embed", error).body.empty()) std::abort();
  }
}

void read_body(std::string_view text) {
  constexpr int64_t kMost = 4;
  expect_api_error_at_most([&] {
    const RequestBody body(text);
    expect_api_error_at_most([&] {
      const auto inputs = body.inputs("inputs", kMost);
      if (inputs.empty() || inputs.size() > kMost) std::abort();
      for (const TextInput& one : inputs) {
        if (one.ids ? one.ids->empty() : one.text.empty()) std::abort();
      }
    });
    expect_api_error_at_most([&] {
      bool is_list = false;
      const auto sequences = body.sequences("inputs", kMost, is_list);
      if (sequences.empty() || (sequences.size() > 1 && !is_list)) std::abort();
    });
    expect_api_error_at_most([&] {
      if (body.texts("texts", kMost).size() > kMost) std::abort();
    });
    expect_api_error_at_most([&] { body.object("inputs").require_text("source_sentence"); });
    expect_api_error_at_most([&] { body.boolean("truncate", true); });
    expect_api_error_at_most([&] { body.whole("dimensions"); });
    expect_api_error_at_most([&] { body.choice("encoding_format", {"float", "base64"}); });
  });
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return -1;
  const std::string_view text = text_of(data, size).substr(1);
  if (text.starts_with('{')) {
    read_body(text);
    return 0;
  }
  const Arrived whole = requests_in(text, text.size() + 1), parts = requests_in(text, 1 + data[0]);
  // A text with several mistakes may be refused for another one first.
  if ((whole.status == 0) != (parts.status == 0)) std::abort();
  if (whole.status == 0 && whole.is_begun != parts.is_begun) std::abort();
  if (whole.requests.size() != parts.requests.size()) std::abort();
  for (size_t i = 0; i < whole.requests.size(); ++i) {
    const HttpRequest &one = whole.requests[i], &other = parts.requests[i];
    if (one.method != other.method || one.path != other.path || one.body != other.body ||
        one.headers != other.headers || one.keeps_alive != other.keeps_alive) {
      std::abort();
    }
    if (one.body.size() > kLimits.body_bytes || one.headers.size() > kLimits.headers) std::abort();
    if (one.header("content-length") && one.header("transfer-encoding")) std::abort();
    read_body(one.body);
  }
  return 0;
}
