#include "onebit/program/serve/http_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "onebit/ground/base/number.h"

namespace onebit::serve {
namespace {

constexpr size_t kLongestLine = 256;  // of a chunk's size, and of a trailer

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

// Lines end with CR LF. A lone LF is accepted, as RFC 9112 allows.
std::string_view next_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// The path of a target, which may be a whole URL (as proxies write it).
std::string path_of(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    target.remove_prefix(scheme.size());
    target.remove_prefix(std::min(target.find('/'), target.size()));
    if (target.empty()) target = "/";
  }
  if (!target.starts_with('/') && target != "*") throw HttpError(400, "the target is not a path");
  return std::string(target.substr(0, target.find_first_of("?#")));
}

void add_header(std::string_view line, HttpRequest& request) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    throw HttpError(400, "a header has no name");
  }
  const std::string_view value = trimmed(line.substr(colon + 1));
  const auto is_control = [](char c) { return (c >= 0 && c < ' ' && c != '\t') || c == 0x7F; };
  if (std::any_of(value.begin(), value.end(), is_control)) {
    throw HttpError(400, "a header contains control characters");
  }
  request.headers.emplace_back(lower_case(line.substr(0, colon)), std::string(value));
}

bool keeps_alive(const HttpRequest& request, bool is_old) {
  const std::string wish = lower_case(request.header("connection").value_or(""));
  if (wish.find("close") != std::string::npos) return false;
  return !is_old || wish.find("keep-alive") != std::string::npos;
}

}  // namespace

std::optional<std::string_view> HttpRequest::header(std::string_view name) const {
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [&](const auto& header) { return header.first == name; });
  if (found == headers.end()) return std::nullopt;
  return found->second;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Content";
    case 424:
      return "Failed Dependency";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

HttpRequest parse_head(std::string_view head) {
  const std::string_view first = next_line(head);
  const size_t method_end = std::min(first.find(' '), first.size());
  const size_t target_end = std::max(first.rfind(' '), method_end);
  const std::string_view version = first.substr(std::min(target_end + 1, first.size()));
  HttpRequest request{.method = std::string(first.substr(0, method_end)), .path = ""};
  if (!is_token(request.method) || target_end <= method_end + 1 || !version.starts_with("HTTP/")) {
    throw HttpError(400, "this is not a request of HTTP");
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    throw HttpError(505, "only HTTP/1.1 and HTTP/1.0 are understood");
  }
  const std::string_view target = first.substr(method_end + 1, target_end - method_end - 1);
  if (target.find_first_of(" \t") != std::string_view::npos) {
    throw HttpError(400, "the target contains blanks");
  }
  request.path = path_of(target);
  while (!head.empty()) add_header(next_line(head), request);
  const bool is_old = version == "HTTP/1.0";
  if (!is_old && !request.header("host")) throw HttpError(400, "the header Host is missing");
  request.keeps_alive = keeps_alive(request, is_old);
  return request;
}

BodyFraming body_framing(const HttpRequest& request, size_t most) {
  const std::string_view compression = request.header("content-encoding").value_or("identity");
  if (compression != "identity") throw HttpError(415, "compressed bodies are not understood");
  std::optional<std::string_view> length;
  bool is_chunked = false;
  for (const auto& [name, value] : request.headers) {
    if (name == "transfer-encoding") {
      if (is_chunked || lower_case(value) != "chunked") {
        throw HttpError(501, "the only Transfer-Encoding that is understood is chunked");
      }
      is_chunked = true;
    } else if (name == "content-length") {
      if (length && *length != value) throw HttpError(400, "there are two lengths of the body");
      length = value;
    }
  }
  if (is_chunked && length) throw HttpError(400, "the body is chunked and has a Content-Length");
  if (is_chunked || !length) return {.is_chunked = is_chunked};
  const bool has_digits_only =
      !length->empty() &&
      std::all_of(length->begin(), length->end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!has_digits_only) throw HttpError(400, "Content-Length is not a number");
  const std::optional<size_t> size = whole_number<size_t>(*length);
  if (!size || *size > most) {
    throw HttpError(413, fmt::format("the body has {} bytes, the limit is {}", *length, most));
  }
  return {.size_bytes = *size};
}

void ChunkedBody::end_line() {
  if (line_.ends_with('\r')) line_.pop_back();
  if (state_ == State::kDataEnd) {
    if (!line_.empty()) throw HttpError(400, "a chunk is longer than its size");
    state_ = State::kSize;
  } else if (state_ == State::kTrailer) {
    if (line_.empty()) state_ = State::kComplete;
  } else {
    const std::string_view digits = trimmed(std::string_view(line_).substr(0, line_.find(';')));
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, left_, 16);
    if (digits.empty() || stop != end || error != std::errc()) {
      throw HttpError(400, "the size of a chunk is not a number");
    }
    if (left_ > most_ - body_.size()) {
      throw HttpError(413, fmt::format("the body has more than {} bytes", most_));
    }
    state_ = left_ == 0 ? State::kTrailer : State::kData;
  }
  line_.clear();
}

size_t ChunkedBody::add(std::string_view bytes) {
  size_t used = 0;
  while (used < bytes.size() && state_ != State::kComplete) {
    if (state_ == State::kData) {
      const size_t part = std::min(left_, bytes.size() - used);
      body_.append(bytes.substr(used, part));
      used += part;
      left_ -= part;
      if (left_ == 0) state_ = State::kDataEnd;
      continue;
    }
    const char c = bytes[used++];
    if (c == '\n') {
      end_line();
    } else {
      line_.push_back(c);
      if (line_.size() > kLongestLine) throw HttpError(400, "a line of a chunk is too long");
    }
  }
  return used;
}

std::string reply_text(const HttpReply& reply, bool closes, bool has_body) {
  std::string text;
  text.reserve(reply.body.size() + 512);
  fmt::format_to(std::back_inserter(text),
                 "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n", reply.status,
                 reason_phrase(reply.status), reply.content_type, reply.body.size());
  for (const auto& [name, value] : reply.headers) {
    fmt::format_to(std::back_inserter(text), "{}: {}\r\n", name, value);
  }
  text += closes ? "Connection: close\r\n\r\n" : "Connection: keep-alive\r\n\r\n";
  if (has_body) text += reply.body;
  return text;
}

}  // namespace onebit::serve
