#include "onebit/program/serve/http_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "onebit/ground/base/number.h"

namespace onebit::serve {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_control(char c) {
  return (c >= 0 && c < ' ') || c == 0x7F;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
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

// The path of a target, which may be a whole URL (as proxies write it).
std::string path_of(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    target.remove_prefix(scheme.size());
    target.remove_prefix(std::min(target.find('/'), target.size()));
    if (target.empty()) target = "/";
  }
  if (!target.starts_with('/') && target != "*") throw HttpError(400, "the target is not a path");
  if (std::any_of(target.begin(), target.end(), [](char c) { return c == ' ' || is_control(c); })) {
    throw HttpError(400, "the target contains blanks or control characters");
  }
  return std::string(target.substr(0, target.find_first_of("?#")));
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
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
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

bool RequestReader::takes_continue() {
  return std::exchange(expects_continue_, false);
}

HttpRequest RequestReader::take() {
  HttpRequest request = std::move(request_);
  *this = RequestReader(limits_);
  return request;
}

size_t RequestReader::add(std::string_view bytes) {
  const size_t all = bytes.size();
  while (!bytes.empty() && state_ != State::kComplete) {
    if (state_ == State::kBody || state_ == State::kData) {
      take_data(bytes);
    } else if (takes_line(bytes)) {
      end_line();
      line_.clear();
    }
  }
  return all - bytes.size();
}

void RequestReader::count_head(size_t bytes) {
  head_bytes_ += bytes;
  if (head_bytes_ <= limits_.head_bytes) return;
  if (state_ == State::kFirstLine) throw HttpError(414, "the request line is too long");
  throw HttpError(431, fmt::format("the headers have more than {} bytes", limits_.head_bytes));
}

// Moves the bytes of a line to line_, without CR LF. False: its end is not there yet.
bool RequestReader::takes_line(std::string_view& bytes) {
  const size_t end = bytes.find('\n');
  const std::string_view part = bytes.substr(0, end);
  // The sizes of chunks and the ends of their lines are subtracted later.
  count_head(part.size());
  line_ += part;
  bytes.remove_prefix(std::min(part.size() + 1, bytes.size()));
  const size_t cr = line_.find('\r');
  const bool is_whole = end != std::string_view::npos;
  if (cr < line_.size() - 1 && cr != std::string::npos) {
    throw HttpError(400, "a line contains CR without LF");
  }
  if (!is_whole) return false;
  if (cr == std::string::npos) throw HttpError(400, "a line ends without CR");
  line_.pop_back();
  return true;
}

void RequestReader::take_data(std::string_view& bytes) {
  const size_t part = std::min(left_, bytes.size());
  request_.body.append(bytes.substr(0, part));
  bytes.remove_prefix(part);
  left_ -= part;
  if (left_ > 0) return;
  state_ = state_ == State::kBody ? State::kComplete : State::kDataEnd;
}

void RequestReader::end_line() {
  switch (state_) {
    case State::kFirstLine:
      if (!line_.empty()) read_first_line();  // empty lines before a request are allowed
      break;
    case State::kHeaders:
      if (line_.empty()) {
        end_head();
      } else {
        read_header();
      }
      break;
    case State::kSize:
      read_chunk_size();
      break;
    case State::kDataEnd:
      if (!line_.empty()) throw HttpError(400, "a chunk is longer than its size");
      --head_bytes_;
      state_ = State::kSize;
      break;
    case State::kTrailers:
      if (line_.empty()) state_ = State::kComplete;
      break;
    case State::kBody:
    case State::kData:
    case State::kComplete:
      break;
  }
}

void RequestReader::read_first_line() {
  const std::string_view line = line_;
  const size_t method_end = std::min(line.find(' '), line.size());
  const size_t target_end = std::max(std::min(line.rfind(' '), line.size()), method_end);
  const std::string_view method = line.substr(0, method_end);
  const std::string_view version = line.substr(std::min(target_end + 1, line.size()));
  if (!is_token(method) || target_end <= method_end + 1 || !version.starts_with("HTTP/")) {
    throw HttpError(400, "this is not a request of HTTP");
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    throw HttpError(505, "only HTTP/1.1 and HTTP/1.0 are understood");
  }
  is_old_ = version == "HTTP/1.0";
  request_.method = method;
  request_.path = path_of(line.substr(method_end + 1, target_end - method_end - 1));
  state_ = State::kHeaders;
}

void RequestReader::read_header() {
  const std::string_view line = line_;
  if (line.front() == ' ' || line.front() == '\t') {
    throw HttpError(400, "a header is continued on the next line");
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    throw HttpError(400, "a header has no name");
  }
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (std::any_of(value.begin(), value.end(), [](char c) { return is_control(c) && c != '\t'; })) {
    throw HttpError(400, "a header contains control characters");
  }
  if (request_.headers.size() >= limits_.headers) {
    throw HttpError(431, fmt::format("there are more than {} headers", limits_.headers));
  }
  request_.headers.emplace_back(lower_case(line.substr(0, colon)), std::string(value));
}

void RequestReader::end_head() {
  const auto hosts = std::count_if(request_.headers.begin(), request_.headers.end(),
                                   [](const auto& header) { return header.first == "host"; });
  if (hosts > 1 || (hosts == 0 && !is_old_))
    throw HttpError(400, "a request needs one header Host");
  const std::string wish = lower_case(request_.header("connection").value_or(""));
  request_.keeps_alive = wish.find("close") == std::string::npos &&
                         (!is_old_ || wish.find("keep-alive") != std::string::npos);
  read_framing();
  const std::optional<std::string_view> expected = request_.header("expect");
  if (!expected || is_old_) return;
  if (lower_case(*expected) != "100-continue") {
    throw HttpError(417, "the only Expect that is understood is 100-continue");
  }
  expects_continue_ = state_ != State::kComplete;
}

// How the end of the body is found. A proxy in front must find the same end.
void RequestReader::read_framing() {
  const std::string_view compression = request_.header("content-encoding").value_or("identity");
  if (compression != "identity") throw HttpError(415, "compressed bodies are not understood");
  std::optional<std::string_view> length, encoding;
  for (const auto& [name, value] : request_.headers) {
    if (name != "transfer-encoding" && name != "content-length") continue;
    auto& place = name == "content-length" ? length : encoding;
    if (place) throw HttpError(400, fmt::format("there are two headers {}", name));
    place = value;
  }
  if (encoding) {
    if (length) throw HttpError(400, "the body is chunked and has a Content-Length");
    if (is_old_) throw HttpError(400, "HTTP/1.0 has no Transfer-Encoding");
    if (lower_case(*encoding) != "chunked") {
      throw HttpError(501, "the only Transfer-Encoding that is understood is chunked");
    }
    state_ = State::kSize;
    return;
  }
  if (length && (length->empty() || !std::all_of(length->begin(), length->end(), is_digit))) {
    throw HttpError(400, "Content-Length is not a number");
  }
  const std::optional<size_t> size = length ? whole_number<size_t>(*length) : size_t{0};
  if (!size || *size > limits_.body_bytes) {
    throw HttpError(
        413, fmt::format("the body has {} bytes, the limit is {}", *length, limits_.body_bytes));
  }
  left_ = *size;
  state_ = left_ == 0 ? State::kComplete : State::kBody;
}

void RequestReader::read_chunk_size() {
  const std::string_view digits = std::string_view(line_).substr(0, line_.find(';'));
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, left_, 16);
  if (error == std::errc::invalid_argument || stop != end) {
    throw HttpError(400, "the size of a chunk is not a number");
  }
  if (error != std::errc() || left_ > limits_.body_bytes - request_.body.size()) {
    throw HttpError(413, fmt::format("the body has more than {} bytes", limits_.body_bytes));
  }
  head_bytes_ -= digits.size() + 1;
  state_ = left_ == 0 ? State::kTrailers : State::kData;
}

std::string reply_head(const HttpReply& reply, bool closes) {
  std::string text;
  fmt::format_to(std::back_inserter(text),
                 "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n", reply.status,
                 reason_phrase(reply.status), reply.content_type, reply.body.size());
  for (const auto& [name, value] : reply.headers) {
    fmt::format_to(std::back_inserter(text), "{}: {}\r\n", name, value);
  }
  return text + (closes ? "Connection: close\r\n\r\n" : "Connection: keep-alive\r\n\r\n");
}

}  // namespace onebit::serve
