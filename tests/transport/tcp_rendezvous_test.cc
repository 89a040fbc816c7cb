#include "onebit/exchange/transport/tcp_rendezvous.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "onebit/exchange/transport/tcp_addresses.h"
#include "onebit/exchange/transport/tcp_door.h"
#include "onebit/exchange/transport/tcp_protocol.h"
#include "onebit/ground/base/error.h"
#include "tests/transport/tcp_world.h"

namespace onebit::transport {
namespace {

using tcp_tests::options_of;

// What each rank's meet() throws; "" for none.
std::vector<std::string> outcomes(const std::vector<TcpOptions>& options,
                                  const std::function<void(int port)>& beside = {}) {
  std::vector<std::string> messages(options.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < options.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        meet(options[i]);
      } catch (const Error& error) {
        messages[i] = error.what();
      }
    });
  }
  if (beside) beside(options[0].port);
  for (std::thread& thread : threads) thread.join();
  return messages;
}

void expect_part(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(TcpRendezvous, EachRankHasEveryOther) {
  const std::vector<TcpOptions> options = options_of(5);
  std::vector<TcpWorld> worlds(options.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < options.size(); ++i) {
    threads.emplace_back([&, i] { worlds[i] = meet(options[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < worlds.size(); ++i) {
    for (size_t peer = 0; peer < worlds.size(); ++peer) {
      EXPECT_EQ(worlds[i].peers[peer].socket.is_open(), i != peer);
      if (i == peer) continue;
      // The two ends of one connection.
      EXPECT_EQ(local_address(worlds[i].peers[peer].socket).text(),
                peer_address(worlds[peer].peers[i].socket).text());
    }
    EXPECT_EQ(worlds[i].node_of_rank, std::vector<int>(5, 0)) << "one machine";
    EXPECT_EQ(worlds[i].local_rank, static_cast<int>(i));
  }
}

TEST(TcpRendezvous, GroupsAreNodesAndLocalRanksAreTaken) {
  std::vector<TcpOptions> options = options_of(4);
  for (size_t i = 0; i < options.size(); ++i) {
    options[i].group = static_cast<int>(i / 2);
    options[i].local_rank = static_cast<int>(1 - i % 2);
  }
  std::vector<std::thread> threads;
  for (const TcpOptions& one : options) {
    threads.emplace_back([&one] {
      const TcpWorld world = meet(one);
      EXPECT_EQ(world.node_of_rank, (std::vector<int>{0, 0, 1, 1}));
      EXPECT_EQ(world.local_rank, 1 - one.rank % 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(TcpRendezvous, ARankThatDoesNotComeIsNamed) {
  std::vector<TcpOptions> options = options_of(5);
  options.erase(options.begin() + 2, options.begin() + 4);  // ranks 2 and 3
  for (TcpOptions& one : options) one.start_seconds = 1;
  for (const std::string& message : outcomes(options)) {
    expect_part(message, "have not come");
    expect_part(message, "within 1 s: 2-3;");
  }
}

// Ranks 0 and 1 wait for rank 2, and rank 1 alone for rank 0.
TEST(TcpRendezvous, ACheckEndsTheWaiting) {
  for (const size_t first : {0U, 1U}) {
    std::vector<TcpOptions> options = options_of(3);
    options.resize(2);
    options.erase(options.begin(), options.begin() + static_cast<ptrdiff_t>(first));
    std::atomic<int> calls = 0;
    options[0].check = [&calls] { require(++calls < 3, "its user has had enough"); };
    const std::vector<std::string> messages = outcomes(options);
    expect_part(messages[0], "its user has had enough");
    if (messages.size() > 1) expect_part(messages[1], "rank 1 cannot join the run");
  }
}

// Ranks that come after the error find nobody.
TEST(TcpRendezvous, TwoRanksWithOneNumberAreAnError) {
  std::vector<TcpOptions> options = options_of(4);
  options[3].rank = 1;
  for (TcpOptions& one : options) one.start_seconds = 2;
  const auto messages = outcomes(options);
  for (const size_t i : {0, 1, 3}) expect_part(messages[i], "two processes have rank 1, on ");
}

TEST(TcpRendezvous, RanksThatDisagreeAboutTheirCountAreAnError) {
  std::vector<TcpOptions> options = options_of(3);
  options[2].world_size = 5;
  for (TcpOptions& one : options) one.start_seconds = 2;
  const auto messages = outcomes(options);
  for (const size_t i : {0, 2}) {
    expect_part(messages[i], "was started as one of 5 ranks, rank 0 as one of 3");
  }
}

TEST(TcpRendezvous, AnotherRunIsRefusedAndDoesNotDisturb) {
  const std::vector<TcpOptions> options = options_of(3);
  std::vector<TcpOptions> strangers = {options[1], options[2]};
  strangers[0].run = "another";
  strangers[1].token = "guessed";
  std::vector<std::string> refused, others;
  const auto first = outcomes({options[0]}, [&](int) {
    refused = outcomes(strangers);
    others = outcomes({options[1], options[2]});
  });
  expect_part(refused[0], "belongs to another run (\"another\", this is \"test\")");
  expect_part(refused[1], "does not show this run's token");
  EXPECT_EQ(refused[1].find("secret"), std::string::npos);
  EXPECT_EQ(first[0] + others[0] + others[1], "");
}

TEST(TcpRendezvous, AnotherVersionIsAnErrorOnAll) {
  const std::vector<TcpOptions> options = options_of(2);
  const auto messages = outcomes({options[0]}, [&](int port) {
    std::string bytes =
        note_bytes(TcpNoteKind::kHello, "{}", {.run = "test", .token = "secret"}, true);
    bytes[8] = static_cast<char>(kTcpProtocol + 1);
    Socket socket;
    do {
      socket = begin_connecting(resolve("127.0.0.1", port).front());
    } while (finish_connecting(socket, 1) != 0);
    ASSERT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    const auto answer = receive_note(std::move(socket), 10, {}, [] {});
    EXPECT_EQ(answer.kind, TcpNoteKind::kFailed);
    expect_part(answer.note["reason"], "another version of onebit");
  });
  expect_part(messages[0], "another version of onebit, which speaks protocol 2 and not 1");
}

// Ports are scanned, and guessed by browsers.
TEST(TcpRendezvous, GarbageAtThePortDoesNotDisturb) {
  const std::vector<TcpOptions> options = options_of(3);
  const std::string hello = note_bytes(TcpNoteKind::kHello, "{}", {.run = "test"}, false);
  std::vector<std::string> garbage = {"",    "GET / HTTP/1.1\r\n\r\n", std::string(1'000'000, 'x'),
                                      hello, hello.substr(0, 20),      hello.substr(0, 100)};
  uint32_t random = 1;
  for (int i = 0; i < 300; ++i) {
    std::string bytes = hello;
    for (int change = 0; change < 4; ++change) {
      random = random * 1664525 + 1013904223;
      bytes[(random >> 8) % bytes.size()] = static_cast<char>(random >> 24);
    }
    garbage.push_back(bytes.substr(0, bytes.size() - (random >> 16) % 40));
  }
  const auto messages = outcomes(options, [&](int port) {
    for (const std::string& bytes : garbage) {
      const Socket socket = begin_connecting(resolve("127.0.0.1", port).front());
      if (finish_connecting(socket, 1) != 0) return;  // the run has started
      ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
  });
  for (const std::string& message : messages) EXPECT_EQ(message, "");
}

TEST(TcpRendezvous, APortInUseIsAnError) {
  TcpOptions options = options_of(2).front();
  const Socket other = listen_at(resolve("127.0.0.1", options.port).front());
  ASSERT_TRUE(other.is_open());
  expect_part(outcomes({options})[0], "rank 0 cannot listen at 127.0.0.1");
  expect_part(outcomes({options})[0], "Address already in use");
}

TEST(TcpRendezvous, AWrongAddressIsAnError) {
  TcpOptions options = options_of(2).back();
  options.start_seconds = 1;
  expect_part(outcomes({options})[0], "Connection refused");
  options.master = "no-such-machine.invalid";
  expect_part(outcomes({options})[0], "rank 1 cannot reach rank 0 at no-such-machine.invalid");
  options.rank = 0;
  expect_part(outcomes({options})[0], "no-such-machine.invalid");
}

TEST(TcpRendezvous, PortsOfARangeAreTaken) {
  std::vector<TcpOptions> options = options_of(3);
  const int first = tcp_tests::free_port();
  for (TcpOptions& one : options) {
    one.first_port = first;
    one.last_port = std::min(65535, first + 50);
  }
  std::vector<std::thread> threads;
  for (const TcpOptions& one : options) {
    threads.emplace_back([&one, first] {
      const TcpWorld world = meet(one);
      for (int peer = 0; peer < one.rank; ++peer) {
        const int port = peer_address(world.peers[static_cast<size_t>(peer)].socket).port();
        EXPECT_GE(port, first);
        EXPECT_LE(port, first + 50);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace onebit::transport
