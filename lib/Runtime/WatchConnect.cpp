//===- WatchConnect.cpp - a star of connections ---------------------------===//
//
// Rank 0 opens a port. Its place reaches the others by other means, with a token.
//
//   rank 0                     rank r
//   ── banner, of the token ─▶            so that r knows that it has found its own hub, and no other service
//   ◀─ hello, token, size, card ──        so that rank 0 knows who comes
//   ── beats ─▶                           while others are waited for
//   ── welcome, all cards ─▶              all are here
//
// Whoever else finds the port is sent away, and nobody waits for him. A second process that says that it is rank r, or one
// that has another idea of how many ranks there are, is told so.
//
//===----------------------------------------------------------------------===//
#include "Watch.h"
#include "cleave/Program/Digest.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sstream>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace cleave::runtime;

/// How long a connection may take to say who it is.
static constexpr int64_t kGuestTime = 1000000000;
/// How long others wait for the hub's word behind the deadline that it has itself.
static constexpr int64_t kHubTime = 2000000000;
static constexpr int kTickMilliseconds = 50;

static Status failHere(int rank, Cause cause, std::string detail) {
  Failure failure;
  failure.cause = cause;
  failure.rank = rank;
  failure.detail = std::move(detail);
  return failure;
}

/// Says that this is the hub of those who know the token, and does not tell the token.
static std::string makeBanner(const std::string &token) {
  return std::to_string(cleave::program::hashBytes("cleave " + token));
}

//===----------------------------------------------------------------------===//
// Rank 0
//===----------------------------------------------------------------------===//

/// Nobody can know the token before he is told.
Status Watch::listen(std::string &address) {
  uint64_t drawn = 0;
  if (getrandom(&drawn, sizeof(drawn), 0) != sizeof(drawn))
    return failHere(rank, Cause::System, std::string("cannot draw a token: ") + std::strerror(errno));
  return listen({0}, std::to_string(drawn), address);
}

Status Watch::listen(const std::vector<int> &ports, const std::string &itsToken, std::string &address) {
  token = itsToken;
  std::string why;
  int port = 0;
  listener = openPort(ports, port, why);
  if (listener < 0) {
    std::string which = ports.front() == 0 ? "" : " " + std::to_string(ports.front());
    which += ports.size() > 1 ? " to " + std::to_string(ports.back()) : "";
    return failHere(rank, Cause::System, "cannot open a port" + which + ": " + why);
  }
  address = format(describeHere(token, port));
  return {};
}

/// The ranks that have no connection.
std::string Watch::nameMissing() const {
  std::string missing;
  for (int other = 1; other < size; ++other)
    if (std::none_of(peers.begin(), peers.end(), [&](const Peer &peer) { return peer.rank == other; }))
      missing += (missing.empty() ? "" : ", ") + std::to_string(other);
  return missing;
}

/// Nobody is waited for but by all of them at once: a stranger who says nothing keeps no rank from coming in.
Status Watch::acceptAll(int64_t deadline) {
  cards.resize(size);
  cards[0] = card;
  std::vector<Peer> guests;
  while (peers.size() + 1 < size_t(size) && !fault) {
    int64_t now = getNow();
    if (now >= deadline) {
      noteFault(failHere(rank, Cause::Timeout, "no connection from rank " + nameMissing() + turnedAway).getFailure());
      break;
    }
    std::vector<pollfd> polled = {{listener, POLLIN, 0}};
    for (const std::vector<Peer> *list : {&guests, &peers})
      for (const Peer &peer : *list)
        polled.push_back({peer.socket, POLLIN, 0});
    poll(polled.data(), polled.size(), int(std::min<int64_t>((deadline - now) / 1000000 + 1, kTickMilliseconds)));
    for (Peer &peer : peers)
      if (peer.socket >= 0)
        receive(peer);
    for (size_t i = guests.size(); i-- > 0;)
      if (!hearGuest(guests[i]))
        guests.erase(guests.begin() + int64_t(i));
    if (polled.front().revents)
      acceptGuest(guests);
    beat(getNow());
  }
  for (Peer &guest : guests)
    close(guest.socket);
  if (fault)
    return *fault;
  std::string lines;
  for (const std::string &line : cards)
    lines += line + "\n";
  sendAll(Kind::Welcome, rank, lines);
  return {};
}

/// Somebody has come, and is told whose port this is. Who he is he has yet to say.
void Watch::acceptGuest(std::vector<Peer> &guests) {
  Peer guest;
  guest.socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (guest.socket < 0)
    return;
  setUp(guest.socket);
  guest.lastHeard = getNow();
  send(guest, Kind::Banner, rank, makeBanner(token));
  guests.push_back(std::move(guest));
}

/// False when it is no guest any more: a rank, or sent away.
bool Watch::hearGuest(Peer &guest) {
  char buffer[512];
  ssize_t got = recv(guest.socket, buffer, sizeof(buffer), MSG_DONTWAIT);
  if (got > 0)
    guest.received.append(buffer, size_t(got));
  Frame hello;
  if (takeFrame(guest.received, hello)) {
    admit(guest, hello);
    return false;
  }
  bool hasEnded = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  if (!hasEnded && guest.received.size() <= sizeof(buffer) && getNow() - guest.lastHeard < kGuestTime)
    return true;
  close(guest.socket);
  return false;
}

/// Tells a process of this run why it has no place in it.
void Watch::turnAway(Peer &guest, const std::string &why) {
  send(guest, Kind::Fault, rank, encodeFailure(failHere(rank, Cause::Invalid, why).getFailure()));
  close(guest.socket);
  turnedAway += "; " + why;
}

/// A guest has said who he is.
void Watch::admit(Peer &guest, const Frame &hello) {
  // The card is the rest of the line, whatever it holds.
  std::istringstream words(hello.text);
  std::string itsToken, itsCard;
  int itsSize = 0;
  words >> itsToken >> itsSize;
  std::getline(words >> std::ws, itsCard);
  if (hello.kind != Kind::Hello || itsToken != token) {
    close(guest.socket);
    return;
  }
  std::string who = "a process was started as rank " + std::to_string(hello.about);
  if (itsSize != size || hello.about <= 0 || hello.about >= size) {
    // It will never be right, so nobody need wait for the rest.
    who += " of " + std::to_string(itsSize) + ", rank 0 as one of " + std::to_string(size);
    turnAway(guest, who);
    noteFault(failHere(rank, Cause::Invalid, who).getFailure());
    return;
  }
  if (std::any_of(peers.begin(), peers.end(), [&](const Peer &peer) { return peer.rank == hello.about; }))
    return turnAway(guest, "another " + who.substr(2));
  guest.rank = hello.about;
  guest.lastHeard = getNow();
  cards[guest.rank] = itsCard;
  peers.push_back(std::move(guest));
}

//===----------------------------------------------------------------------===//
// The others
//===----------------------------------------------------------------------===//

/// The first frame of a connection, if it comes within a second.
static bool readBanner(int socket, std::string &received, const std::string &token) {
  Frame frame;
  char buffer[512];
  while (!takeFrame(received, frame)) {
    ssize_t size = recv(socket, buffer, sizeof(buffer), 0);
    if (size <= 0 || received.size() > sizeof(buffer))
      return false;
    received.append(buffer, size_t(size));
  }
  return frame.kind == Frame::Kind::Banner && frame.text == makeBanner(token);
}

/// Every port of the place is tried, until one is the hub's: it may not listen yet, or another service may be there.
Status Watch::connectToHub(const FindPlace &hub, int64_t deadline) {
  std::string where;
  while (getNow() < deadline) {
    std::optional<Place> place = hub();
    for (size_t i = 0; place && i < place->ports.size() && getNow() < deadline; ++i) {
      where = " on " + place->host;
      Peer peer;
      peer.rank = 0;
      peer.socket = connectTo(*place, place->ports[i]);
      if (peer.socket < 0)
        continue;
      if (!readBanner(peer.socket, peer.received, place->token)) {
        close(peer.socket);
        continue;
      }
      peer.lastHeard = getNow();
      peers.push_back(std::move(peer));
      send(peers.back(), Kind::Hello, rank, place->token + " " + std::to_string(size) + " " + card);
      return awaitWelcome(deadline + kHubTime);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return failHere(rank, Cause::Timeout, "cannot reach rank 0" + where);
}

/// The hub beats until all are here, and says what is wrong if they are not in time.
Status Watch::awaitWelcome(int64_t deadline) {
  while (!isWelcome && !fault) {
    pollfd polled = {peers.front().socket, POLLIN, 0};
    poll(&polled, 1, kTickMilliseconds);
    if (peers.front().socket >= 0)
      receive(peers.front());
    checkSilence(getNow());
    if (getNow() > deadline && !isWelcome && !fault)
      return failHere(rank, Cause::Timeout, "rank 0 did not say that all ranks are here");
  }
  return isWelcome ? Status() : Status(*fault);
}

//===----------------------------------------------------------------------===//
// Sending
//===----------------------------------------------------------------------===//

void Watch::send(Peer &peer, Kind kind, int about, const std::string &text) {
  std::string bytes = encodeFrame({kind, about, text});
  // What cannot be sent is found out by reading: the end of the connection, or silence.
  for (size_t done = 0; done < bytes.size() && peer.socket >= 0;) {
    ssize_t sent = ::send(peer.socket, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (sent <= 0)
      return;
    done += size_t(sent);
  }
}

void Watch::sendAll(Kind kind, int about, const std::string &text) {
  for (Peer &peer : peers)
    send(peer, kind, about, text);
}
