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
#include <thread>
#include <unistd.h>

using namespace cleave::runtime;

static Options makeOptions() {
  Options options;
  options.deadline = 10;
  options.silence = 10;
  return options;
}

/// Opens the port of rank 0 for this machine.
static std::string listen(Watch &hub) {
  std::string address;
  EXPECT_TRUE(hub.listen(getAddress(Reach::Machine), address).isOk());
  return address;
}

/// Comes to rank 0 as a rank of `size`; the connection. Nothing but what the handshake says.
static int join(const std::string &address, int rank, int size) {
  std::optional<Address> where = parseAddress(address);
  Identity own;
  own.secret = where->secret;
  own.rank = rank;
  own.size = size;
  own.card = "card of " + std::to_string(rank);
  Dialer dialer(own, 0);
  dialer.setEndpoint(where->place);
  for (int64_t end = getNow() + 5000000000; getNow() < end;)
    if (std::optional<Handshake> found = dialer.advance()) {
      std::string rest;
      int socket = found->take(rest);
      EXPECT_EQ(rest, "");
      return socket;
    }
  ADD_FAILURE() << "rank 0 lets nobody in";
  return -1;
}

/// All frames that come until the connection ends.
static std::vector<Frame> readAll(int socket) {
  std::string received;
  char buffer[512];
  for (ssize_t got; (got = recv(socket, buffer, sizeof(buffer), 0)) > 0;)
    received.append(buffer, size_t(got));
  std::vector<Frame> frames;
  for (Frame frame; takeFrame(received, frame);)
    frames.push_back(frame);
  return frames;
}

/// A connection to the port of an address, with some bytes on it.
static int sendTo(const std::string &address, const std::string &bytes) {
  sockaddr_in to = listTargets(parseAddress(address)->place).front();
  int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(connect(descriptor, reinterpret_cast<sockaddr *>(&to), sizeof(to)), 0);
  EXPECT_EQ(write(descriptor, bytes.data(), bytes.size()), ssize_t(bytes.size()));
  return descriptor;
}

TEST(Watch, FirstFailureIsThatOfAll) {
  Watch hub(0, 3, makeOptions()), second(1, 3, makeOptions()), third(2, 3, makeOptions());
  std::string address = listen(hub);
  std::thread one([&] { ASSERT_TRUE(second.begin(address).isOk()); });
  std::thread other([&] { ASSERT_TRUE(third.begin(address).isOk()); });
  ASSERT_TRUE(hub.begin(address).isOk());
  one.join();
  other.join();
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
  std::string address = listen(hub);
  int strangers[] = {sendTo(address, "GET / HTTP/1.1\r\n\r\n"),
                     sendTo(address, encodeFrame({Frame::Kind::Hello, 1, std::string(80, 'x')})),
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

// Of two that say that they are rank 1 the second is sent away, and told why.
TEST(Watch, DuplicatesAreSentAway) {
  Watch hub(0, 3, makeOptions());
  std::string address = listen(hub);
  std::thread running([&] { ASSERT_TRUE(hub.begin(address, "card of 0").isOk()); });
  // One after the other, so that it is clear who is second.
  int first = join(address, 1, 3);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  int second = join(address, 1, 3);
  std::vector<Frame> told = readAll(second);
  int other = join(address, 2, 3);
  running.join();
  ASSERT_EQ(told.size(), 1u);
  ASSERT_EQ(told[0].kind, Frame::Kind::Fault);
  Failure failure;
  ASSERT_TRUE(decodeFailure(told[0].text, failure));
  EXPECT_EQ(failure.getMessage(), "rank 0: another process was started as rank 1 (invalid)");
  EXPECT_EQ(hub.getCards(), (std::vector<std::string>{"card of 0", "card of 1", "card of 2"}));
  for (int socket : {first, second, other})
    close(socket);
}

// A process that thinks that there are four ranks will never be right: all end, and it hears why.
TEST(Watch, OtherSizesAreRefused) {
  Watch hub(0, 3, makeOptions()), fine(1, 3, makeOptions()), wrong(2, 4, makeOptions());
  std::string address = listen(hub);
  std::string expected = "rank 0: a process was started as rank 2 of 4, rank 0 as one of 3 (invalid)";
  std::thread others([&] {
    std::thread waiting([&] { EXPECT_EQ(fine.begin(address).getMessage(), expected); });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_EQ(wrong.begin(address).getMessage(), expected);
    waiting.join();
  });
  EXPECT_EQ(hub.begin(address).getMessage(), expected);
  others.join();
}

// At the ports that a launcher names another service may be, which speaks first, or never; and the hub of another job.
TEST(Watch, OwnHubIsFoundAmongOthers) {
  Watch other(0, 2, makeOptions()), hub(0, 2, makeOptions()), rank(1, 2, makeOptions());
  in_addr here = getAddress(Reach::Machine);
  std::string otherAddress, address;
  OpenPort mute = *openPort(here, {0}), loud = *openPort(here, {0});
  ASSERT_TRUE(other.listen(here, {0}, Secret{7}, otherAddress).isOk());
  ASSERT_TRUE(hub.listen(here, {0}, Secret{42}, address).isOk());
  std::optional<Address> place = parseAddress(address);
  ASSERT_TRUE(place);
  place->place.ports = {1, mute.number, loud.number, parseAddress(otherAddress)->place.ports.front(),
                        place->place.ports.front()};
  std::thread service([&] {
    pollfd polled = {loud.socket, POLLIN, 0};
    poll(&polled, 1, 5000);
    int guest = accept(loud.socket, nullptr, nullptr);
    EXPECT_EQ(write(guest, "220 ready\r\n", 11), 11);
    close(guest);
  });
  std::thread foreign([&] { (void)other.begin("", ""); });
  int64_t began = getNow();
  std::thread joining([&] { EXPECT_TRUE(rank.begin([&] { return place; }, "").isOk()); });
  EXPECT_TRUE(hub.begin("", "").isOk());
  // Nobody waits for the one who says nothing.
  EXPECT_LT(getNow() - began, 1000000000);
  joining.join();
  service.join();
  close(mute.socket);
  close(loud.socket);
  std::thread leaving([&] { rank.leave(); });
  hub.leave();
  leaving.join();
  // The hub that nobody came to: let it go.
  int late = join(otherAddress, 1, 2);
  close(late);
  foreign.join();
}

// Silent connections cost no time, however many there are: they are not waited for one by one.
TEST(Watch, SilentStrangersKeepNobodyWaiting) {
  Watch hub(0, 3, makeOptions()), second(1, 3, makeOptions()), third(2, 3, makeOptions());
  std::string address = listen(hub);
  std::vector<int> strangers;
  for (int i = 0; i < 400; ++i)
    strangers.push_back(sendTo(address, ""));
  int64_t began = getNow();
  std::thread one([&] { EXPECT_TRUE(second.begin(address).isOk()); });
  std::thread other([&] { EXPECT_TRUE(third.begin(address).isOk()); });
  EXPECT_TRUE(hub.begin(address).isOk());
  EXPECT_LT(getNow() - began, 1500000000);
  one.join();
  other.join();
  for (int stranger : strangers)
    close(stranger);
  // Who is known has said nothing wrong.
  EXPECT_FALSE(hub.getFailure().isRaised());
  Failure end;
  end.detail = "the test is over";
  hub.raise(end);
}

// Rank 1 has another secret: both sides say so, and neither says which.
TEST(Watch, OtherSecretsAreTold) {
  Options options = makeOptions();
  options.deadline = 0.5;
  Watch hub(0, 2, options), rank(1, 2, options);
  std::string address = listen(hub);
  std::optional<Address> wrong = parseAddress(address);
  wrong->secret[15] ^= 1;
  std::thread joining([&] {
    EXPECT_EQ(rank.begin(format(*wrong)).getMessage(),
              "rank 1: cannot reach rank 0 on " + getHostName() +
                  "; who is there has another secret, or is of another version "
                  "(timeout)");
  });
  std::string said = hub.begin(address).getMessage();
  EXPECT_EQ(said.rfind("rank 0: no connection from rank 1; ", 0), 0u) << said;
  EXPECT_NE(said.find(" have come with another secret"), std::string::npos) << said;
  joining.join();
}

// What another process says is printed, and must not steer a terminal.
TEST(Watch, ControlCharactersOfOthersAreNotPrinted) {
  Failure given, got;
  given.operation = "barrier\x1b[2J";
  given.detail = "a\rb\nc\x1b]0;title\x07";
  ASSERT_TRUE(decodeFailure(encodeFailure(given), got));
  EXPECT_EQ(got.operation, "\"barrier\\x1B[2J\"");
  EXPECT_EQ(got.detail, "\"a\\x0Db\\x0Ac\\x1B]0;title\\x07\"");
  EXPECT_EQ(sanitizeLines("rank 1\n\x1b[31mred\nend\n"), "rank 1\n\"\\x1B[31mred\"\nend\n");
}

// A process that ends closes its connections, and has not said goodbye.
TEST(Watch, DeathIsNoticedAtOnce) {
  Watch hub(0, 2, makeOptions());
  std::string address = listen(hub);
  int rank = -1;
  std::thread joining([&] { rank = join(address, 1, 2); });
  ASSERT_TRUE(hub.begin(address).isOk());
  joining.join();
  close(rank);
  for (int64_t end = getNow() + 2000000000; getNow() < end && !hub.getFailure().isRaised();)
    std::this_thread::yield();
  EXPECT_EQ(hub.getFailure().get().getMessage(), "rank 0: the process of rank 1 is gone (died)");
}

TEST(Watch, MissingRanksAreNamed) {
  Options options = makeOptions();
  options.deadline = 0.1;
  Watch hub(0, 3, options);
  std::string address = listen(hub);
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

// Who leaves because of an error says it to all, by way of rank 0; it is there until the others have left, too.
TEST(Watch, WhoLeavesSaysWhy) {
  Watch hub(0, 3, makeOptions()), second(1, 3, makeOptions()), third(2, 3, makeOptions());
  std::string address = listen(hub);
  std::thread one([&] { ASSERT_TRUE(second.begin(address).isOk()); });
  std::thread other([&] { ASSERT_TRUE(third.begin(address).isOk()); });
  ASSERT_TRUE(hub.begin(address).isOk());
  one.join();
  other.join();
  std::atomic<bool> hasReturned{false};
  std::thread leaves([&] {
    second.leave("no \x1b data");
    hasReturned = true;
  });
  while (third.getSecondsSinceLeft(1) < 0)
    std::this_thread::yield();
  EXPECT_EQ(third.getWhyLeft(1), "\"no \\x1B data\"");
  EXPECT_EQ(third.getWhyLeft(0), "");
  EXPECT_FALSE(hasReturned);
  std::thread last([&] { third.leave(); });
  hub.leave();
  last.join();
  leaves.join();
  EXPECT_FALSE(hub.getFailure().isRaised());
}
