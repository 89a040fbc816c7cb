// A client of HTTP that can also do what no client should do.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>

#include "onebit/ground/base/socket.h"

namespace onebit::serve {

struct ClientReply {
  int status = 0;  // 0: the connection was closed instead
  std::string head, body;

  bool closes() const { return head.find("Connection: close") != std::string::npos; }
};

class HttpClient {
 public:
  // `receive_bytes`: the size of the socket's buffer. 0: the usual one.
  explicit HttpClient(int port, int receive_bytes = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_bytes > 0) {
      ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    }
    const int on = 1;
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
  }

  void send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      text.remove_prefix(static_cast<size_t>(sent));
    }
  }
  // The next reply, however long it takes.
  ClientReply receive() {
    ClientReply reply;
    size_t head_end = 0;
    while ((head_end = text_.find("\r\n\r\n")) == std::string::npos) {
      if (!receive_more()) return reply;
    }
    reply.head = text_.substr(0, head_end);
    reply.status = std::stoi(reply.head.substr(reply.head.find(' ') + 1));
    text_.erase(0, head_end + 4);
    const size_t length = reply.head.find("Content-Length: ");
    if (length == std::string::npos) return reply;
    const size_t size = std::stoul(reply.head.substr(length + 16));
    while (text_.size() < size) {
      if (!receive_more()) return {};
    }
    reply.body = text_.substr(0, size);
    text_.erase(0, size);
    return reply;
  }
  ClientReply ask(std::string_view text) {
    send(text);
    return receive();
  }
  // Waits until the server closes the connection, and returns what it sent before.
  std::string receive_rest() {
    while (receive_more()) {
    }
    return std::exchange(text_, "");
  }
  void end_sending() { ::shutdown(socket_.get(), SHUT_WR); }
  // As when its process is killed with bytes unread: a reset.
  void reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    socket_.close();
  }

 private:
  bool receive_more() {
    std::array<char, 4096> bytes;
    const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (count <= 0) return false;
    text_.append(bytes.data(), static_cast<size_t>(count));
    return true;
  }

  Socket socket_;
  std::string text_;
};

inline std::string get_text(const std::string& path, const std::string& headers = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n";
}
inline std::string post_text(const std::string& path, const std::string& body,
                             const std::string& headers = "") {
  return "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace onebit::serve
