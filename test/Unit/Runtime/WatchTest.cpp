//===- WatchTest.cpp - signs of life between processes --------------------===//
//
// Watches of several ranks in one process, which cannot tell; and a stranger who finds the port. What processes do to each
// other is tested under mpirun (test/Runtime).
//
//===----------------------------------------------------------------------===//
#include "Watch.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sstream>
#include <sys/socket.h>
#include <unistd.h>

using namespace cleave::runtime;

static Options makeOptions() {
  Options options;
  options.deadline = 10;
  options.silence = 10;
  return options;
}

/// A connection to the port of an address, with some bytes on it.
static int sendTo(const std::string &address, const std::string &bytes) {
  std::istringstream words(address);
  std::string token;
  int port;
  words >> token >> port;
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(uint16_t(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(connect(descriptor, reinterpret_cast<sockaddr *>(&to), sizeof(to)), 0);
  EXPECT_EQ(write(descriptor, bytes.data(), bytes.size()), ssize_t(bytes.size()));
  return descriptor;
}

TEST(Watch, FirstFailureIsThatOfAll) {
  Watch hub(0, 3, makeOptions()), second(1, 3, makeOptions()), third(2, 3, makeOptions());
  std::string address;
  ASSERT_TRUE(hub.listen(address).isOk());
  std::thread others([&] {
    EXPECT_TRUE(second.begin(address).isOk());
    EXPECT_TRUE(third.begin(address).isOk());
  });
  EXPECT_TRUE(hub.begin(address).isOk());
  others.join();
  Failure failure;
  failure.rank = 1;
  failure.operation = "barrier, number 7";
  failure.detail = "a NaN";
  second.raise(failure);
  while (!hub.getFailure().isRaised() || !third.getFailure().isRaised())
    std::this_thread::yield();
  for (Watch *watch : {&hub, &second, &third})
    EXPECT_EQ(watch->getFailure().get().getMessage(), "rank 1: barrier, number 7: a NaN (aborted)");
}

// Bytes that are no frame, a frame with another token, and one that never comes: they are sent away.
TEST(Watch, StrangersAreSentAway) {
  Watch hub(0, 2, makeOptions()), second(1, 2, makeOptions());
  std::string address;
  ASSERT_TRUE(hub.listen(address).isOk());
  int strangers[] = {sendTo(address, "GET / HTTP/1.1\r\n\r\n"),
                     sendTo(address, encodeFrame({Frame::Kind::Hello, 1, "12345"})),
                     sendTo(address, encodeFrame({Frame::Kind::Beat, 1, ""})), sendTo(address, "")};
  std::thread other([&] { EXPECT_TRUE(second.begin(address).isOk()); });
  EXPECT_TRUE(hub.begin(address).isOk());
  other.join();
  for (int stranger : strangers)
    close(stranger);
  EXPECT_FALSE(hub.getFailure().isRaised());
  std::thread leaving([&] { second.leave(); });
  hub.leave();
  leaving.join();
  EXPECT_FALSE(hub.getFailure().isRaised());
  EXPECT_GE(hub.getSecondsSinceLeft(1), 0);
}

// Of two that say that they are rank 1 the second is sent away.
TEST(Watch, DuplicatesAreSentAway) {
  Watch hub(0, 3, makeOptions());
  std::string address;
  ASSERT_TRUE(hub.listen(address).isOk());
  std::string token = address.substr(0, address.find(' '));
  int first = sendTo(address, encodeFrame({Frame::Kind::Hello, 1, token}));
  int second = sendTo(address, encodeFrame({Frame::Kind::Hello, 1, token}));
  int other = sendTo(address, encodeFrame({Frame::Kind::Hello, 2, token}));
  ASSERT_TRUE(hub.begin(address).isOk());
  char byte;
  EXPECT_EQ(recv(second, &byte, 1, 0), 0);
  EXPECT_EQ(recv(first, &byte, 1, MSG_DONTWAIT), -1);
  for (int socket : {first, second, other})
    close(socket);
}

// A process that ends closes its connections, and has not said goodbye.
TEST(Watch, DeathIsNoticedAtOnce) {
  Watch hub(0, 2, makeOptions());
  std::string address;
  ASSERT_TRUE(hub.listen(address).isOk());
  int rank = sendTo(address, encodeFrame({Frame::Kind::Hello, 1, address.substr(0, address.find(' '))}));
  ASSERT_TRUE(hub.begin(address).isOk());
  close(rank);
  for (int64_t end = getNow() + 2000000000; getNow() < end && !hub.getFailure().isRaised();)
    std::this_thread::yield();
  EXPECT_EQ(hub.getFailure().get().getMessage(), "rank 0: the process of rank 1 is gone (died)");
}

TEST(Watch, MissingRanksAreNamed) {
  Options options = makeOptions();
  options.deadline = 0.1;
  Watch hub(0, 3, options);
  std::string address;
  ASSERT_TRUE(hub.listen(address).isOk());
  EXPECT_EQ(hub.begin(address).getMessage(), "rank 0: no connection from rank 1, 2 (timeout)");
}

// What is cut off is waited for; a length that no frame has is never waited for to the end.
TEST(Watch, FramesAreTakenWhole) {
  std::string bytes = encodeFrame({Frame::Kind::Record, 3, "text"}), received;
  Frame frame;
  for (char byte : bytes) {
    EXPECT_FALSE(takeFrame(received, frame));
    received += byte;
  }
  EXPECT_TRUE(takeFrame(received, frame));
  EXPECT_EQ(frame.about, 3);
  EXPECT_EQ(frame.text, "text");
  EXPECT_EQ(received, "");
  bytes[12] = bytes[13] = bytes[14] = bytes[15] = char(0xff);
  EXPECT_FALSE(takeFrame(bytes, frame));
}
