//===- HandshakeTest.cpp - how connections between ranks begin ------------===//
//
// Both sides in one process, over pairs of sockets whose bytes a test can keep, change and say again.
//
//===----------------------------------------------------------------------===//
#include "Handshake.h"
#include "cleave/Runtime/FlightRecorder.h"

#include <cstring>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace cleave::runtime;
using State = Handshake::State;

/// The secret 000102..0f.
static Secret makeSecret() {
  Secret secret;
  for (size_t i = 0; i < secret.size(); ++i)
    secret[i] = static_cast<unsigned char>(i);
  return secret;
}

static Identity makeIdentity(int rank) {
  Identity own;
  own.secret = makeSecret();
  own.rank = rank;
  own.size = 4;
  own.program = 99;
  own.card = "card of " + std::to_string(rank);
  return own;
}

/// The first frame that comes, or an empty one.
static Frame readFrame(int socket) {
  std::string received;
  char byte;
  Frame frame;
  while (!takeFrame(received, frame) && recv(socket, &byte, 1, 0) == 1)
    received += byte;
  return frame;
}

static State finish(Handshake &side) {
  State state = State::Going;
  for (int64_t end = getNow() + 3000000000; state == State::Going && getNow() < end;)
    state = side.advance();
  return state;
}

namespace {
/// A host, and the other end of its connection in the test's hands.
struct Host {
  explicit Host(const Identity &own) : own(own) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    side.emplace(Handshake::accept(ends[0], this->own));
    other = ends[1];
  }
  ~Host() { close(other); }
  void say(const Frame &frame) const {
    std::string bytes = encodeFrame(frame);
    EXPECT_EQ(write(other, bytes.data(), bytes.size()), ssize_t(bytes.size()));
  }

  Identity own;
  std::optional<Handshake> side;
  int other = -1;
};

/// A guest that connects to a port of the test's.
struct Guest {
  Guest(const Identity &own, int host) : own(own) {
    OpenPort port = *openPort(getAddress(Reach::Machine), {0});
    listener = port.socket;
    sockaddr_in to = listTargets({"127.0.0.1", {}, {port.number}}).front();
    side.emplace(Handshake::connect(to, this->own, host));
    pollfd polled = {listener, POLLIN, 0};
    poll(&polled, 1, 3000);
    other = accept(listener, nullptr, nullptr);
  }
  ~Guest() {
    close(other);
    close(listener);
  }
  /// What it says to a banner of these bytes.
  Frame answer(const std::string &nonce) {
    std::string bytes = encodeFrame({Frame::Kind::Banner, 0, nonce});
    EXPECT_EQ(write(other, bytes.data(), bytes.size()), ssize_t(bytes.size()));
    for (int64_t end = getNow() + 200000000; getNow() < end;)
      EXPECT_EQ(side->advance(), State::Going);
    return readFrame(other);
  }

  Identity own;
  std::optional<Handshake> side;
  int listener = -1, other = -1;
};
} // namespace

// The values are those of Python's hashlib.blake2b with the same key.
TEST(Secret, ProofsAreKeyedBlake2b) {
  auto digits = [](const auto &bytes) {
    std::string text;
    for (unsigned char byte : bytes) {
      char two[3];
      std::snprintf(two, sizeof(two), "%02x", byte);
      text += two;
    }
    return text;
  };
  EXPECT_EQ(digits(prove(makeSecret(), "ranks of one run")),
            "2a995886c42ae4e630c2ca25603475ed31bade88397a0c78c8ab8cc75dc272a6");
  EXPECT_EQ(digits(derive(makeSecret(), "job")), "ad29a365f177dfae7f920dea38dc26e5");
}

TEST(Secret, IsThirtyTwoDigits) {
  EXPECT_EQ(format(makeSecret()), "000102030405060708090a0b0c0d0e0f");
  EXPECT_EQ(parseSecret("000102030405060708090A0B0c0d0e0f"), makeSecret());
  for (const char *wrong : {"", "12345", "000102030405060708090a0b0c0d0e0", "000102030405060708090a0b0c0d0e0f0",
                            "000102030405060708090a0b0c0d0e0g", " 00102030405060708090a0b0c0d0e0f"})
    EXPECT_FALSE(parseSecret(wrong)) << wrong;
  // 2^-128 that these are the same.
  EXPECT_NE(*drawSecret(), *drawSecret());
  Proof one = prove(makeSecret(), "a"), other = one;
  EXPECT_TRUE(isEqual(one, other));
  for (size_t bit = 0; bit < 8 * one.size(); ++bit) {
    other[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    EXPECT_FALSE(isEqual(one, other));
    other = one;
  }
}

// Whatever of a hello is changed on the way, it proves nothing any more: the nonce, the proof, program, size, rank, card.
TEST(Handshake, EveryBitIsBound) {
  Guest guest(makeIdentity(2), 0);
  Host host(makeIdentity(0));
  Frame banner = readFrame(host.other);
  ASSERT_EQ(banner.kind, Frame::Kind::Banner);
  Frame hello = guest.answer(banner.text);
  ASSERT_EQ(hello.kind, Frame::Kind::Hello);
  for (size_t byte = 0; byte < hello.text.size(); ++byte) {
    // The same nonce again, which no host says twice: what is left is the proof.
    Frame changed = hello;
    changed.text[byte] = char(changed.text[byte] ^ 1 << byte % 8);
    Host another(makeIdentity(0));
    (void)readFrame(another.other);
    another.say(changed);
    EXPECT_EQ(finish(*another.side), State::Refused) << byte;
  }
  host.say(hello);
  EXPECT_EQ(host.side->advance(), State::Going);
  EXPECT_TRUE(host.side->isProved());
  EXPECT_EQ(host.side->getGuest().rank, 2);
  EXPECT_EQ(host.side->getGuest().card, "card of 2");
}

// The same, on the connection that it was said for: no byte of it may change.
TEST(Handshake, ChangedHellosAreRefusedOnTheirOwnConnection) {
  for (size_t byte : {0, 16, 48, 56, 60, 64}) {
    Guest guest(makeIdentity(2), 0);
    Host host(makeIdentity(0));
    Frame hello = guest.answer(readFrame(host.other).text);
    hello.text[byte] = char(hello.text[byte] ^ 4);
    host.say(hello);
    EXPECT_EQ(finish(*host.side), State::Refused) << byte;
  }
}

// What a rank said once proves nothing to the next connection: the host's nonce is another.
TEST(Handshake, ReplaysAreRefused) {
  Guest guest(makeIdentity(2), 0);
  Host host(makeIdentity(0)), again(makeIdentity(0));
  Frame hello = guest.answer(readFrame(host.other).text);
  host.say(hello);
  EXPECT_EQ(host.side->advance(), State::Going);
  EXPECT_TRUE(host.side->isProved());
  (void)readFrame(again.other);
  again.say(hello);
  EXPECT_EQ(finish(*again.side), State::Refused);
  EXPECT_FALSE(again.side->isProved());
}

// A port for messages takes nobody who came to the watch, nor one who meant another rank.
TEST(Handshake, PurposeAndHostAreBound) {
  Identity messages = makeIdentity(0), other = makeIdentity(1);
  messages.purpose = Identity::Purpose::Messages;
  for (const Identity &own : {messages, other}) {
    Guest guest(makeIdentity(2), 0);
    Host host(own);
    host.say(guest.answer(readFrame(host.other).text));
    EXPECT_EQ(finish(*host.side), State::Refused);
  }
}

// Whoever listens at rank 0's port and does not know the secret cannot prove that he is rank 0: not with nothing, nor with what
// the guest has just proved.
TEST(Handshake, HostsProveThemselves) {
  for (bool reflects : {false, true}) {
    Guest guest(makeIdentity(2), 0);
    Frame hello = guest.answer(std::string(sizeof(Nonce), 'n'));
    std::string proof = reflects ? hello.text.substr(sizeof(Nonce), sizeof(Proof)) : std::string(sizeof(Proof), 0);
    std::string bytes = encodeFrame({Frame::Kind::Proof, 0, proof});
    ASSERT_EQ(write(guest.other, bytes.data(), bytes.size()), ssize_t(bytes.size()));
    EXPECT_EQ(finish(*guest.side), State::Refused);
  }
}

// A message before the proof says nothing: neither a failure nor a welcome of a stranger is heard.
TEST(Handshake, NothingIsHeardBeforeTheProof) {
  for (Frame::Kind kind : {Frame::Kind::Fault, Frame::Kind::Welcome, Frame::Kind::Beat, Frame::Kind::Hello}) {
    Guest guest(makeIdentity(2), 0);
    (void)guest.answer(std::string(sizeof(Nonce), 'n'));
    std::string bytes = encodeFrame({kind, 0, "text"});
    ASSERT_EQ(write(guest.other, bytes.data(), bytes.size()), ssize_t(bytes.size()));
    EXPECT_EQ(finish(*guest.side), State::Failed);
  }
}

// Who has nothing to say is sent away in the end; what is said too long is not kept.
TEST(Handshake, StrangersHaveNoTimeAndNoRoom) {
  Host silent(makeIdentity(0)), loud(makeIdentity(0));
  std::string much(100000, 'x');
  (void)!send(loud.other, much.data(), much.size(), MSG_DONTWAIT);
  EXPECT_EQ(finish(*loud.side), State::Failed);
  int64_t began = getNow();
  EXPECT_EQ(finish(*silent.side), State::Failed);
  EXPECT_GT(getNow() - began, 1000000000);
}

// Of all who have come never more than some hundred are kept; a rank among them is known at once.
TEST(Door, IsOpenForRanksAmongMany) {
  auto [listener, port] = *openPort(getAddress(Reach::Machine), {0});
  Identity own = makeIdentity(0), his = makeIdentity(3);
  Door door(listener, own);
  Endpoint here{"127.0.0.1", {}, {port}};
  sockaddr_in to = listTargets(here).front();
  std::vector<int> strangers;
  Dialer dialer(his, 0);
  dialer.setEndpoint(here);
  std::vector<Handshake> known;
  std::optional<Handshake> found;
  for (int i = 0; i < 700; ++i) {
    int stranger = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    (void)connect(stranger, reinterpret_cast<sockaddr *>(&to), sizeof(to));
    strangers.push_back(stranger);
    if (i % 10 == 0)
      EXPECT_TRUE(door.advance().empty());
  }
  std::vector<pollfd> polls;
  door.addPolls(polls);
  EXPECT_LE(polls.size(), 257u);
  int64_t began = getNow();
  while (known.empty() && getNow() - began < 3000000000) {
    if (!found)
      found = dialer.advance();
    known = door.advance();
  }
  EXPECT_LT(getNow() - began, 1000000000);
  ASSERT_EQ(known.size(), 1u);
  EXPECT_EQ(known.front().getGuest().rank, 3);
  for (int stranger : strangers)
    close(stranger);
  close(listener);
}
