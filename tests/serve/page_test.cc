// The page without a browser. tools/check_page.py drives it in one.
#include "onebit/program/serve/page.h"

#include "tests/serve/served_models.h"

namespace onebit::serve {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string header_of(const HttpReply& reply, const std::string& name) {
  for (const auto& [other, value] : reply.headers) {
    if (other == name) return value;
  }
  return "";
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_F(ServiceTest, ThePageNeedsNothingFromOutside) {
  serve_encoder();
  const HttpReply reply = get("/");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.content_type, "text/html; charset=utf-8");
  EXPECT_EQ(reply.body.find("<!DOCTYPE html>"), 0u);
  // The only address is the name of SVG's elements, which nothing fetches.
  EXPECT_EQ(count_of(reply.body, "://"), count_of(reply.body, "'http://www.w3.org/2000/svg'"));
  for (const char* word : {" src=", "@import", "url(", "<iframe", " style=", " onclick="}) {
    EXPECT_THAT(reply.body, Not(HasSubstr(word)));
  }
  EXPECT_EQ(count_of(reply.body, "href="), 1u);
  EXPECT_THAT(reply.body, HasSubstr("href=\"data:,\""));
  // Texts of readers and of models cannot become markup.
  for (const char* word :
       {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("}) {
    EXPECT_THAT(reply.body, Not(HasSubstr(word)));
  }
}

TEST_F(ServiceTest, ThePageRunsItsOwnScriptOnly) {
  serve_encoder();
  const HttpReply first = get("/"), second = get("/");
  const std::string policy = header_of(first, "Content-Security-Policy");
  EXPECT_EQ(policy.find("default-src 'none';"), 0u);
  const std::string before = "script-src 'nonce-";
  const size_t at = policy.find(before);
  ASSERT_NE(at, std::string::npos);
  const std::string nonce = policy.substr(at + before.size(), 32);
  ASSERT_EQ(nonce.size(), 32u);
  EXPECT_EQ(nonce.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(policy[at + before.size() + nonce.size()], '\'');
  EXPECT_THAT(first.body, HasSubstr("<script nonce=\"" + nonce + "\">"));
  EXPECT_THAT(first.body, HasSubstr("<style nonce=\"" + nonce + "\">"));
  EXPECT_EQ(count_of(first.body, "<script"), 1u);
  EXPECT_THAT(second.body, Not(HasSubstr(nonce)));
  EXPECT_EQ(header_of(first, "X-Content-Type-Options"), "nosniff");
}

// Labels and fields belong together, and a text browser shows what to do without a script.
TEST_F(ServiceTest, ThePageIsForEveryReader) {
  serve_encoder();
  const std::string page = get("/").body;
  EXPECT_THAT(page, HasSubstr("<html lang=\"en\">"));
  EXPECT_THAT(page, HasSubstr("<label for=\"model\">"));
  EXPECT_THAT(page, HasSubstr("<label for=\"key\">"));
  EXPECT_THAT(page, HasSubstr("role=\"alert\""));
  EXPECT_THAT(page, HasSubstr("width=device-width"));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
  const size_t begin = page.find("<noscript>"), end = page.find("</noscript>");
  ASSERT_LT(begin, end);
  EXPECT_THAT(page.substr(begin, end - begin),
              HasSubstr("<dt>embed: vectors of texts</dt>\n<dd><pre>curl ADDRESS/embed"));
}

TEST_F(ServiceTest, ThePageOfAKeyShowsNoModels) {
  options_.key = "secret";
  write_small_encoder(at("private-name"));
  serve({"private-name"});
  EXPECT_EQ(get("/v1/models").status, 401);
  const HttpReply reply = get("/");
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.body, Not(HasSubstr("private-name")));
  EXPECT_THAT(reply.body, Not(HasSubstr("secret")));
}

TEST(Page, NamesAreEscaped) {
  const std::string page =
      page_reply("1<2", {{"<script>alert(1)</script>", "tagger"}, {"a & b", "masked words"}}).body;
  EXPECT_EQ(count_of(page, "<script"), 1u);
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;: tags in sentences"));
  EXPECT_THAT(page, HasSubstr("a &amp; b: words"));
  EXPECT_THAT(page, HasSubstr("onebit 1&lt;2"));
}

// Every kind of model that can be served has an example and a form.
TEST(Page, KnowsEveryKind) {
  for (const char* kind :
       {"embedding", "classifier", "reranker", "tagger", "answers", "masked words"}) {
    const std::string page = page_reply("1", {{"one", kind}}).body;
    EXPECT_THAT(page, HasSubstr("<dt>one: ")) << kind;
    EXPECT_THAT(page, HasSubstr("\n  '" + std::string(kind) + "': {")) << kind;
  }
}

}  // namespace
}  // namespace onebit::serve
