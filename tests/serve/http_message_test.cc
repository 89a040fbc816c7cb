#include "onebit/program/serve/http_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace onebit::serve {
namespace {

const std::string kHost = "Host: a\r\n";

// The requests of a text that arrives in pieces of `size` bytes.
std::vector<HttpRequest> requests_of(std::string_view text, size_t size,
                                     const HttpLimits& limits = {}) {
  RequestReader reader(limits);
  std::vector<HttpRequest> requests;
  for (size_t begin = 0; begin < text.size(); begin += size) {
    std::string_view piece = text.substr(begin, size);
    while (!piece.empty()) {
      piece.remove_prefix(reader.add(piece));
      if (reader.is_complete()) requests.push_back(reader.take());
    }
  }
  EXPECT_FALSE(reader.is_begun()) << text;
  return requests;
}

HttpRequest request_of(const std::string& text, const HttpLimits& limits = {}) {
  std::vector<HttpRequest> requests = requests_of(text, text.size(), limits);
  EXPECT_EQ(requests.size(), 1u) << text;
  return requests.empty() ? HttpRequest{} : std::move(requests.front());
}

// The status of the error in a text, however it arrives. 0: there is none.
int status_of(const std::string& text, const HttpLimits& limits = {}) {
  int status = 0;
  for (size_t size = 1; size <= text.size(); size = size < 4 ? size + 1 : size * 2) {
    RequestReader reader(limits);
    int found = 0;
    try {
      for (size_t begin = 0; begin < text.size() && !reader.is_complete(); begin += size) {
        reader.add(std::string_view(text).substr(begin, size));
      }
    } catch (const HttpError& error) {
      EXPECT_NE(std::string(error.what()), "");
      found = error.status();
    }
    if (size > 1) {
      EXPECT_EQ(found, status) << "in pieces of " << size << ": " << text;
    }
    status = found;
  }
  return status;
}

const std::string kPost = "POST /embed?a=b HTTP/1.1\r\n" + kHost +
                          "Content-Type:\t application/json \r\nContent-Length: 5\r\n\r\nhel\r\n";

TEST(RequestReader, ReadsARequest) {
  const HttpRequest request = request_of(kPost);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/embed");
  EXPECT_EQ(request.header("content-type"), "application/json");
  EXPECT_EQ(request.header("host"), "a");
  EXPECT_EQ(request.header("absent"), std::nullopt);
  EXPECT_EQ(request.body, "hel\r\n");
  EXPECT_TRUE(request.keeps_alive);
}

const std::string kChunked =
    "POST / HTTP/1.1\r\n" + kHost +
    "Transfer-Encoding: Chunked\r\n\r\n"
    "3\r\nabc\r\n00A;name=\"x\"\r\n\r\n\r\n567890\r\n0\r\nTrailer: x\r\n\r\n";

TEST(RequestReader, ReadsChunks) {
  EXPECT_EQ(request_of(kChunked).body, "abc\r\n\r\n567890");
}

TEST(RequestReader, PiecesOfAnySizeAreTheSameRequests) {
  const std::string text =
      kPost + "\r\n" + kChunked + "GET /health HTTP/1.1\r\n" + kHost + "\r\n" + kPost;
  for (size_t size = 1; size <= text.size(); ++size) {
    const std::vector<HttpRequest> requests = requests_of(text, size);
    ASSERT_EQ(requests.size(), 4u) << size;
    EXPECT_EQ(requests[0].body, "hel\r\n");
    EXPECT_EQ(requests[1].body, "abc\r\n\r\n567890");
    EXPECT_EQ(requests[2].path, "/health");
    EXPECT_EQ(requests[3].header("content-type"), "application/json");
  }
  for (size_t split = 0; split <= text.size(); ++split) {
    RequestReader reader({});
    size_t requests = 0;
    for (std::string_view part :
         {std::string_view(text).substr(0, split), std::string_view(text).substr(split)}) {
      while (!part.empty()) {
        part.remove_prefix(reader.add(part));
        if (!reader.is_complete()) continue;
        reader.take();
        ++requests;
      }
    }
    EXPECT_EQ(requests, 4u) << split;
  }
}

TEST(RequestReader, KnowsWhetherTheConnectionStays) {
  const auto keeps = [](const std::string& version, const std::string& headers) {
    return request_of("GET / HTTP/" + version + "\r\n" + headers + "\r\n").keeps_alive;
  };
  EXPECT_TRUE(keeps("1.1", kHost));
  EXPECT_FALSE(keeps("1.1", kHost + "Connection: Close\r\n"));
  EXPECT_FALSE(keeps("1.0", ""));
  EXPECT_TRUE(keeps("1.0", "Connection: Keep-Alive\r\n"));
}

TEST(RequestReader, TheTargetMayBeAWholeUrl) {
  const auto path = [](const std::string& target) {
    return request_of("GET " + target + " HTTP/1.1\r\n" + kHost + "\r\n").path;
  };
  EXPECT_EQ(path("http://127.0.0.1:80/info?x"), "/info");
  EXPECT_EQ(path("http://127.0.0.1"), "/");
  EXPECT_EQ(path("/%2F#x"), "/%2F");
  EXPECT_EQ(path("*"), "*");
}

TEST(RequestReader, SaysOnceThatTheClientWaits) {
  RequestReader reader({});
  EXPECT_FALSE(reader.takes_continue());
  reader.add("POST / HTTP/1.1\r\n" + kHost + "Content-Length: 2\r\nExpect: 100-Continue\r\n\r\n");
  EXPECT_EQ(reader.path(), "/");
  EXPECT_TRUE(reader.takes_continue());
  EXPECT_FALSE(reader.takes_continue());
  EXPECT_EQ(reader.add("abc"), 2u);
  EXPECT_TRUE(reader.is_complete());
  // Without a body there is nothing to wait for.
  reader.take();
  reader.add("GET / HTTP/1.1\r\n" + kHost + "Expect: 100-continue\r\n\r\n");
  EXPECT_TRUE(reader.is_complete());
  EXPECT_FALSE(reader.takes_continue());
}

std::string with(const std::string& headers, const std::string& body = "") {
  return "POST / HTTP/1.1\r\n" + kHost + headers + "\r\n" + body;
}

TEST(RequestReader, RefusesWhatIsNotHttp) {
  for (const std::string first :
       {"GET", "GET /", "GET  HTTP/1.1", "GET x HTTP/1.1", "G T / HTTP/1.1", "G\"T / HTTP/1.1",
        " GET / HTTP/1.1", "GET /  HTTP/1.1", "GET / a HTTP/1.1", "GET /\t HTTP/1.1",
        "GET /\x01 HTTP/1.1", "GET /\x7F HTTP/1.1", "GET / http/1.1", "\x16\x03\x01\x02",
        "CONNECT a:80 HTTP/1.1", "GET ftp://a/ HTTP/1.1"}) {
    EXPECT_EQ(status_of(first + "\r\n" + kHost + "\r\n"), 400) << first;
  }
  EXPECT_EQ(status_of(std::string("GET /\0 HTTP/1.1\r\n", 17) + kHost + "\r\n"), 400);
  for (const std::string version : {"HTTP/1.2", "HTTP/2.0", "HTTP/0.9", "HTTP/1.10", "HTTP/"}) {
    EXPECT_EQ(status_of("GET / " + version + "\r\n" + kHost + "\r\n"), 505) << version;
  }
}

TEST(RequestReader, RefusesMalformedHeaders) {
  for (const std::string header : {"no colon", ": no name", "a b: c", "a : b", "a\t: b", "a: b\x01",
                                   "a: \x7F", " folded: x", "\tfolded", "Host: another"}) {
    EXPECT_EQ(status_of(with(header + "\r\n")), 400) << header;
  }
  EXPECT_EQ(status_of(with(std::string("a: b\0c\r\n", 8))), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);  // no Host
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\n\r\n"), 0);
  EXPECT_EQ(status_of(with("a: b\xC3\xA9\tc\r\n")), 0);
}

// What two servers could divide differently into requests (request smuggling).
TEST(RequestReader, RefusesABodyWithoutAClearEnd) {
  for (const std::string headers :
       {"Content-Length: 1\r\nContent-Length: 1\r\n", "Content-Length: 1\r\nContent-Length: 2\r\n",
        "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "Content-Length:\r\n",
        "Content-Length: +1\r\n", "Content-Length: -1\r\n", "Content-Length: 1, 1\r\n",
        "Content-Length: 0x1\r\n", "Content-Length: 1 1\r\n", "Content-Length: 1e1\r\n",
        "Content-Length : 1\r\n", "Content-Length: 1\n", "X: a\rContent-Length: 1\r\n"}) {
    EXPECT_EQ(status_of(with(headers, "a")), 400) << headers;
  }
  for (const std::string encoding : {"identity", "gzip, chunked", "chunked, identity", "xchunked",
                                     "chunked;x", "", "\"chunked\""}) {
    EXPECT_EQ(status_of(with("Transfer-Encoding: " + encoding + "\r\n")), 501) << encoding;
  }
  EXPECT_EQ(status_of("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  // Lines that end with LF alone, or contain CR.
  EXPECT_EQ(status_of("GET / HTTP/1.1\nHost: a\n\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\n\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\r\nHost: a\r\n\r\n"), 400);
}

TEST(RequestReader, RefusesMalformedChunks) {
  for (const std::string chunks :
       {"\r\n", "x\r\n", "-1\r\n", "+1\r\n", "0x1\r\na\r\n", " 1\r\na\r\n", "1 \r\na\r\n",
        "1\r\nab\r\n", "1\r\na\n0\r\n\r\n", "1\na\r\n0\r\n\r\n", "1\r\na0\r\n\r\n", ";x\r\n",
        "1\rx\r\n", "0\r\n\n"}) {
    EXPECT_EQ(status_of(with("Transfer-Encoding: chunked\r\n", chunks)), 400) << chunks;
  }
  EXPECT_EQ(status_of(with("Transfer-Encoding: chunked\r\n", "FFFFFFFFFFFFFFFFF\r\n")), 413);
}

TEST(RequestReader, RefusesWhatExceedsTheLimits) {
  const HttpLimits limits{.head_bytes = 100, .headers = 3, .body_bytes = 10};
  EXPECT_EQ(status_of("GET /" + std::string(100, 'a') + " HTTP/1.1\r\n" + kHost + "\r\n", limits),
            414);
  EXPECT_EQ(status_of(with("a: " + std::string(100, 'a') + "\r\n"), limits), 431);
  EXPECT_EQ(status_of(with("a: b\r\nc: d\r\n"), limits), 0);
  EXPECT_EQ(status_of(with("a: b\r\nc: d\r\ne: f\r\n"), limits), 431);
  EXPECT_EQ(status_of(with("Content-Length: 10\r\n", "0123456789"), limits), 0);
  EXPECT_EQ(status_of(with("Content-Length: 11\r\n"), limits), 413);
  EXPECT_EQ(status_of(with("Content-Length: 99999999999999999999999\r\n"), limits), 413);
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  EXPECT_EQ(status_of(with(chunked, "5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n"), limits), 0);
  EXPECT_EQ(status_of(with(chunked, "5\r\n01234\r\n6\r\n"), limits), 413);
  // Neither extensions of chunks nor trailers are endless. The chunks themselves may be many.
  std::string many;
  for (int i = 0; i < 10; ++i) many += "1\r\na\r\n";
  EXPECT_EQ(status_of(with(chunked, many + "0\r\n\r\n"), limits), 0);
  EXPECT_EQ(status_of(with(chunked, "1;" + std::string(100, 'x')), limits), 431);
  EXPECT_EQ(status_of(with(chunked, "0\r\na: " + std::string(100, 'x')), limits), 431);
  EXPECT_EQ(status_of(with(chunked, std::string(100, '0')), limits), 431);
}

TEST(RequestReader, RefusesWhatItDoesNotUnderstand) {
  EXPECT_EQ(status_of(with("Content-Encoding: gzip\r\n")), 415);
  EXPECT_EQ(status_of(with("Content-Encoding: identity\r\n")), 0);
  EXPECT_EQ(status_of(with("Expect: 200-ok\r\n")), 417);
}

TEST(RequestReader, HalfARequestIsBegun) {
  RequestReader reader({});
  EXPECT_FALSE(reader.is_begun());
  reader.add("\r\n");
  EXPECT_FALSE(reader.is_begun());
  reader.add("P");
  EXPECT_TRUE(reader.is_begun());
  EXPECT_FALSE(reader.is_complete());
  EXPECT_EQ(reader.path(), "");
}

TEST(ReplyHead, HasLengthAndHeaders) {
  const HttpReply reply{.status = 413, .body = "{}", .headers = {{"A", "b"}}};
  EXPECT_EQ(reply_head(reply, false),
            "HTTP/1.1 413 Content Too Large\r\nContent-Type: application/json\r\n"
            "Content-Length: 2\r\nA: b\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_THAT(reply_head(reply, true),
              testing::EndsWith("Content-Length: 2\r\nA: b\r\nConnection: close\r\n\r\n"));
}

TEST(ReplyHead, EveryStatusThatIsSentHasAPhrase) {
  for (const int status :
       {200, 400, 401, 404, 405, 408, 413, 414, 415, 417, 422, 424, 429, 431, 501, 503, 505}) {
    EXPECT_NE(reason_phrase(status), "Unknown") << status;
  }
}

}  // namespace
}  // namespace onebit::serve
