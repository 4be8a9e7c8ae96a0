//===- Handshake.cpp - how connections between ranks begin ----------------===//
//
// What comes in is from anybody: it is bounded before it is read, and nothing of it is printed. What keeps a stranger out:
//
//   guesses        a proof is 32 bytes that only the secret of 16 random bytes makes
//   recordings     both sides draw a nonce for each connection, and a proof is over both
//   reflections    a proof names the side that makes it, so a guest cannot send the host's own back
//   relays         a proof names rank, number of ranks, purpose and program: one for another place is none
//   silence        a guest has two seconds, and waits for no other; of too many the oldest unknown one goes
//
// What comes behind the handshake is not protected: SECURITY.md says so.
//
//===----------------------------------------------------------------------===//
#include "Handshake.h"
#include "cleave/Runtime/FlightRecorder.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

using namespace cleave::runtime;

/// How long a guest may take to say who he is, and a connection to come about.
static constexpr int64_t kPatience = 2000000000;
/// How long an address is left alone that was not the right one.
static constexpr int64_t kPause = 30000000;
/// Who is not known yet. Ranks need a moment each, and so many seldom come in one.
static constexpr size_t kMostGuests = 256;
/// No longer is what is said before both are known: a card is a line.
static constexpr size_t kMostSaid = 4096;

namespace {
/// The text of a hello, in front of the card.
struct Hello {
  Nonce nonce;
  Proof proof;
  uint64_t program;
  int32_t size, rank;
};
} // namespace

//===----------------------------------------------------------------------===//
// One connection
//===----------------------------------------------------------------------===//

Handshake::Handshake(int socket, const Identity &own, int host, bool isHost)
    : socket(socket), own(&own), host(host), isHost(isHost), isConnected(isHost), began(getNow()) {
  setUp(socket);
}

Handshake Handshake::accept(int socket, const Identity &own) {
  Handshake made(socket, own, own.rank, /*isHost=*/true);
  std::optional<Nonce> nonce = drawSecret();
  made.hostNonce = nonce.value_or(Nonce());
  std::string text(made.hostNonce.begin(), made.hostNonce.end());
  if (!nonce || !made.send({Frame::Kind::Banner, own.rank, text}))
    shutdown(socket, SHUT_RDWR);
  return made;
}

/// A machine that is not there says nothing: so nobody waits for the connection here.
Handshake Handshake::connect(const sockaddr_in &to, const Identity &own, int host) {
  int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  Handshake made(socket, own, host, /*isHost=*/false);
  if (socket >= 0 && ::connect(socket, reinterpret_cast<const sockaddr *>(&to), sizeof(to)) != 0 &&
      errno != EINPROGRESS) {
    close(socket);
    made.socket = -1;
  }
  return made;
}

Handshake::Handshake(Handshake &&other) : socket(-1) { *this = std::move(other); }

Handshake &Handshake::operator=(Handshake &&other) {
  std::swap(socket, other.socket);
  own = other.own;
  host = other.host;
  isHost = other.isHost;
  isConnected = other.isConnected;
  hasSaidHello = other.hasSaidHello;
  hasProved = other.hasProved;
  began = other.began;
  guest = std::move(other.guest);
  hostNonce = other.hostNonce;
  guestNonce = other.guestNonce;
  received = std::move(other.received);
  return *this;
}

Handshake::~Handshake() {
  if (socket >= 0)
    close(socket);
}

int Handshake::take(std::string &rest) {
  assert(socket >= 0 && (!isHost || hasProved) && "the other one is not known");
  rest = std::move(received);
  return std::exchange(socket, -1);
}

pollfd Handshake::getPoll() const { return {socket, short(isConnected ? POLLIN : POLLOUT), 0}; }

/// A connection that has just begun has room for what is said before both are known.
bool Handshake::send(const Frame &frame) {
  std::string bytes = encodeFrame(frame);
  return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == ssize_t(bytes.size());
}

bool Handshake::receive() {
  char buffer[512];
  ssize_t got = 0;
  while (received.size() <= kMostSaid && (got = recv(socket, buffer, sizeof(buffer), MSG_DONTWAIT)) > 0)
    received.append(buffer, size_t(got));
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

/// Everything that must be the same on both sides. Of all parts but the card the lengths are known before.
Proof Handshake::makeProof(const char *side) const {
  std::string text = "cleave " CLEAVE_VERSION " ";
  text += side;
  auto add = [&](const auto &value) { text.append(reinterpret_cast<const char *>(&value), sizeof(value)); };
  const Identity &his = isHost ? guest : *own;
  add(own->purpose);
  add(host);
  add(his.rank);
  add(his.size);
  add(his.program);
  add(hostNonce);
  add(guestNonce);
  return prove(own->secret, text + his.card);
}

Handshake::State Handshake::advance() {
  if (socket < 0)
    return State::Failed;
  if (!isConnected && !finishConnecting())
    return State::Failed;
  if (!isConnected)
    return getNow() - began < kPatience ? State::Going : State::Failed;
  return isHost ? advanceHost() : advanceGuest();
}

/// False where nobody is there. From then on the socket is as the others are, whose calls take a second at most.
bool Handshake::finishConnecting() {
  pollfd polled = {socket, POLLOUT, 0};
  if (poll(&polled, 1, 0) <= 0)
    return true;
  int error = 0;
  socklen_t length = sizeof(error);
  if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0)
    return false;
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) & ~O_NONBLOCK);
  isConnected = true;
  return true;
}

/// Who has proved who he is may take his time to choose: he has many hosts.
Handshake::State Handshake::advanceHost() {
  bool isOpen = receive();
  for (Frame frame; takeFrame(received, frame);) {
    if (hasProved)
      return frame.kind == Frame::Kind::Chosen ? State::Known : State::Failed;
    Hello hello;
    if (frame.kind != Frame::Kind::Hello || frame.text.size() < sizeof(hello))
      return State::Failed;
    std::memcpy(&hello, frame.text.data(), sizeof(hello));
    guestNonce = hello.nonce;
    guest = *own;
    guest.rank = hello.rank;
    guest.size = hello.size;
    guest.program = hello.program;
    guest.card = frame.text.substr(sizeof(hello));
    if (!isEqual(hello.proof, makeProof("guest")))
      return State::Refused;
    Proof proof = makeProof("host");
    if (!send({Frame::Kind::Proof, own->rank, std::string(proof.begin(), proof.end())}))
      return State::Failed;
    hasProved = true;
  }
  bool mayStill = isOpen && received.size() <= kMostSaid && (hasProved || getNow() - began < kPatience);
  return mayStill ? State::Going : State::Failed;
}

/// A host that has said a banner may take its time over the rest: it may have many guests, and once it has let this one in,
/// coming again would be another process.
Handshake::State Handshake::advanceGuest() {
  bool isOpen = receive();
  for (Frame frame; takeFrame(received, frame);) {
    if (hasSaidHello) {
      Proof proof, wanted = makeProof("host");
      if (frame.kind != Frame::Kind::Proof || frame.text.size() != proof.size())
        return State::Failed;
      std::copy(frame.text.begin(), frame.text.end(), proof.begin());
      if (!isEqual(proof, wanted))
        return State::Refused;
      return send({Frame::Kind::Chosen, own->rank, ""}) ? State::Known : State::Failed;
    }
    std::optional<Nonce> nonce = drawSecret();
    if (!nonce || frame.kind != Frame::Kind::Banner || frame.text.size() != hostNonce.size())
      return State::Failed;
    std::copy(frame.text.begin(), frame.text.end(), hostNonce.begin());
    guestNonce = *nonce;
    Hello hello = {guestNonce, makeProof("guest"), own->program, own->size, own->rank};
    std::string text(reinterpret_cast<const char *>(&hello), sizeof(hello));
    if (!send({Frame::Kind::Hello, own->rank, text + own->card}))
      return State::Failed;
    hasSaidHello = true;
  }
  if (!isOpen)
    return hasSaidHello ? State::Refused : State::Failed;
  bool mayStill = received.size() <= kMostSaid && (hasSaidHello || getNow() - began < kPatience);
  return mayStill ? State::Going : State::Failed;
}

//===----------------------------------------------------------------------===//
// Many
//===----------------------------------------------------------------------===//

void Door::addPolls(std::vector<pollfd> &polls) const {
  polls.push_back({listener, POLLIN, 0});
  for (const Handshake &guest : guests)
    polls.push_back(guest.getPoll());
}

std::vector<Handshake> Door::advance() {
  // Some at a time, so that those who are here are heard in between.
  for (size_t i = 0; i < kMostGuests / 2; ++i) {
    int socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    bool isFull = socket < 0 && (errno == EMFILE || errno == ENFILE);
    if (socket < 0 && !isFull)
      break;
    // Ranks that have proved that they are some are not in anybody's way.
    auto oldest = std::find_if(guests.begin(), guests.end(), [](const Handshake &guest) { return !guest.isProved(); });
    if ((isFull || guests.size() >= kMostGuests) && oldest != guests.end())
      guests.erase(oldest);
    if (isFull)
      break;
    guests.push_back(Handshake::accept(socket, own));
  }
  std::vector<Handshake> known, others;
  for (Handshake &guest : guests) {
    Handshake::State state = guest.advance();
    refused += state == Handshake::State::Refused;
    if (state == Handshake::State::Going)
      others.push_back(std::move(guest));
    else if (state == Handshake::State::Known)
      known.push_back(std::move(guest));
  }
  guests = std::move(others);
  return known;
}

void Dialer::setEndpoint(const Endpoint &place) {
  std::string text;
  for (int port : place.ports)
    text += format(Endpoint{place.host, place.ips, {port}}) + "\n";
  if (text == where)
    return;
  where = text;
  targets.clear();
  for (const sockaddr_in &address : listTargets(place))
    targets.push_back({address, std::nullopt, 0});
  // A name that is not known yet is asked for again.
  if (targets.empty())
    where.clear();
}

void Dialer::addPolls(std::vector<pollfd> &polls) const {
  for (const Target &target : targets)
    if (target.attempt)
      polls.push_back(target.attempt->getPoll());
}

std::optional<Handshake> Dialer::advance() {
  for (Target &target : targets) {
    if (!target.attempt && getNow() >= target.next)
      target.attempt = Handshake::connect(target.address, own, host);
    if (!target.attempt)
      continue;
    Handshake::State state = target.attempt->advance();
    if (state == Handshake::State::Known)
      return std::move(*target.attempt);
    if (state == Handshake::State::Going)
      continue;
    refused = refused || state == Handshake::State::Refused;
    target.attempt.reset();
    target.next = getNow() + kPause;
  }
  return std::nullopt;
}
