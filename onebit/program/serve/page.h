// The page of `GET /`, which tries the models in a browser: one HTML text without anything from
// outside. Its script asks the endpoints that every client asks, and shows what they answer.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "onebit/program/serve/http_message.h"

namespace onebit::serve {

struct PageModel {
  std::string name, kind;  // Endpoints::kind()
};

// `models` is empty where a key is asked for: the script then asks for them with the reader's key.
HttpReply page_reply(const std::string& version, const std::vector<PageModel>& models);

// Its parts (page_style.cc, page_script.cc).
extern const char* const kPageStyle;
extern const char* const kPageScript;

}  // namespace onebit::serve
