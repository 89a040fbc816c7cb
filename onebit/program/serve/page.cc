#include "onebit/program/serve/page.h"

#include <fmt/format.h>

#include "onebit/ground/base/json.h"
#include "onebit/ground/base/machine.h"
#include "onebit/ground/metrics/chart.h"

namespace onebit::serve {
namespace {

using metrics::escape_html;

// What a reader without scripts does instead.
struct Example {
  const char *kind, *about, *path, *body;
};
constexpr Example kExamples[] = {
    {"embedding", "vectors of texts", "/embed", R"({"inputs": "a text")"},
    {"classifier", "labels of texts", "/predict", R"({"inputs": "a text")"},
    {"reranker", "the texts that fit a query best", "/rerank",
     R"({"query": "a query", "texts": ["a text", "another"])"},
    {"tagger", "tags in sentences", "/tag", R"({"inputs": "a sentence")"},
    {"answers", "answers to questions about a text", "/answer",
     R"({"question": "a question", "context": "a text")"},
    {"masked words", "words that are missing in a text", "/fill",
     R"({"inputs": "A text with a [MASK].")"},
};

// A value of a page, which the header names: no other script or style runs.
std::string nonce() {
  return fmt::format("{:016x}{:016x}", random_id(), random_id());
}

std::string model_list(const std::vector<PageModel>& models) {
  std::string text;
  for (const PageModel& model : models) {
    for (const Example& example : kExamples) {
      if (model.kind != example.kind) continue;
      const std::string body =
          fmt::format(R"({}, "model": {}}})", example.body, json_text(model.name));
      text += fmt::format(
          "<dt>{}: {}</dt>\n<dd><pre>curl ADDRESS{} -H 'Content-Type: application/json' -d '{}'"
          "</pre></dd>\n",
          escape_html(model.name), example.about, example.path, escape_html(body));
    }
  }
  return text.empty() ? "" : "<dl>\n" + text + "</dl>\n";
}

constexpr const char* kBody = R"html(
<header>
<h1>onebit</h1>
<p id="choice" hidden><label for="model">Model</label> <select id="model"></select></p>
<p id="access" hidden><label for="key">Key</label>
<input id="key" type="password" autocomplete="off" spellcheck="false"></p>
</header>
<main>
<p id="about"></p>
<form id="form" hidden>
<div id="fields"></div>
<p><button id="run" type="submit">Run</button> <span class="faint">Ctrl+Enter</span></p>
</form>
<p id="error" role="alert" hidden></p>
<section id="result" aria-live="polite" aria-label="Result" hidden></section>
<section id="details" hidden>
<h2>Tokens</h2>
<div id="tokens"></div>
<h2>Time</h2>
<dl id="times"></dl>
<h2>The same with curl</h2>
<pre id="curl" tabindex="0"></pre>
<p><button id="copy" type="button">Copy</button></p>
</section>
)html";

}  // namespace

HttpReply page_reply(const std::string& version, const std::vector<PageModel>& models) {
  const std::string once = nonce();
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>onebit serve</title>\n"
      "<link rel=\"icon\" href=\"data:,\">\n<style nonce=\"{}\">{}</style>\n</head>\n<body>{}",
      once, kPageStyle, kBody);
  page += fmt::format(
      "<noscript>\n<p>This page needs JavaScript to try a model. Other programs need it not:</p>\n"
      "{}<p>ADDRESS is where this page is. docs/serve.md has all endpoints.</p>\n</noscript>\n"
      "</main>\n<footer class=\"faint\">onebit {}</footer>\n<script nonce=\"{}\">{}</script>\n"
      "</body>\n</html>\n",
      model_list(models), escape_html(version), once, kPageScript);
  return {
      .body = std::move(page),
      .content_type = "text/html; charset=utf-8",
      .headers = {{"Content-Security-Policy",
                   fmt::format("default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; "
                               "img-src data:; connect-src 'self'; base-uri 'none'; form-action "
                               "'none'; frame-ancestors 'none'",
                               once)},
                  {"X-Content-Type-Options", "nosniff"},
                  {"Referrer-Policy", "no-referrer"},
                  {"Cache-Control", "no-store"}}};
}

}  // namespace onebit::serve
