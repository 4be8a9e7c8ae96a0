//===- WatchConnect.cpp - a star of connections ---------------------------===//
//
// Rank 0 opens a port. Its place reaches the others by other means, with a secret.
//
//   rank 0                     rank r
//   ◀─ handshake (Handshake.h) ─▶         both are of one run
//   ── beats ─▶                           while others are waited for
//   ── welcome, all cards ─▶              all are here
//
// Whoever else finds the port is sent away, and nobody waits for him. A second process that proves that it is rank r, or one
// that has another idea of how many ranks there are, is told so.
//
//===----------------------------------------------------------------------===//
#include "Watch.h"
#include "cleave/Program/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sstream>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace cleave::runtime;

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

//===----------------------------------------------------------------------===//
// Rank 0
//===----------------------------------------------------------------------===//

/// Nobody can know the secret before he is told.
Status Watch::listen(in_addr at, std::string &address) {
  std::optional<Secret> drawn = drawSecret();
  if (!drawn)
    return failHere(rank, Cause::System, std::string("cannot draw a secret: ") + std::strerror(errno));
  return listen(at, {0}, *drawn, address);
}

Status Watch::listen(in_addr at, const std::vector<int> &ports, const Secret &secret, std::string &address) {
  own.secret = secret;
  cleave::program::Result<OpenPort> port = openPort(at, ports);
  if (!port) {
    std::string which = ports.front() == 0 ? "" : " " + std::to_string(ports.front());
    which += ports.size() > 1 ? " to " + std::to_string(ports.back()) : "";
    return failHere(rank, Cause::System, "cannot open a port" + which + ": " + port.getError().message);
  }
  listener = port->socket;
  address = format(Address{secret, describeHere(at, port->number)});
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

/// Those who are here already may end, or say that something is wrong.
void Watch::hearRanks() {
  for (Peer &peer : peers)
    if (peer.socket >= 0)
      receive(peer);
}

/// Nobody is waited for but by all of them at once: a stranger who says nothing keeps no rank from coming in.
Status Watch::acceptAll(int64_t deadline) {
  cards.resize(size);
  cards[0] = own.card;
  Door door(listener, own);
  while (peers.size() + 1 < size_t(size) && !fault) {
    int64_t now = getNow();
    if (now >= deadline) {
      std::string others = door.getRefused() ? "; " + std::to_string(door.getRefused()) +
                                                   " have come with another secret, or of another version"
                                             : "";
      noteFault(failHere(rank, Cause::Timeout, "no connection from rank " + nameMissing() + turnedAway + others)
                    .getFailure());
      break;
    }
    std::vector<pollfd> polled;
    door.addPolls(polled);
    for (const Peer &peer : peers)
      polled.push_back({peer.socket, POLLIN, 0});
    poll(polled.data(), polled.size(), int(std::min<int64_t>((deadline - now) / 1000000 + 1, kTickMilliseconds)));
    hearRanks();
    for (Handshake &guest : door.advance())
      admit(guest);
    beat(getNow());
  }
  // Who comes now comes in vain.
  close(listener);
  listener = -1;
  if (fault)
    return *fault;
  std::string lines;
  for (const std::string &line : cards)
    lines += line + "\n";
  sendAll(Kind::Welcome, rank, lines);
  return {};
}

/// Tells a process of this run why it has no place in it.
void Watch::turnAway(Peer &guest, const std::string &why) {
  send(guest, Kind::Fault, rank, encodeFailure(failHere(rank, Cause::Invalid, why).getFailure()));
  close(guest.socket);
  turnedAway += "; " + why;
}

/// A guest has proved who he is. Once something is wrong nobody is let in any more.
void Watch::admit(Handshake &handshake) {
  Identity guest = handshake.getGuest();
  Peer peer;
  peer.rank = guest.rank;
  peer.socket = handshake.take(peer.received);
  peer.lastHeard = getNow();
  std::string who = "a process was started as rank " + std::to_string(guest.rank);
  if (guest.size != size || guest.rank <= 0 || guest.rank >= size) {
    // It will never be right, so nobody need wait for the rest.
    who += " of " + std::to_string(guest.size) + ", rank 0 as one of " + std::to_string(size);
    turnAway(peer, who);
    if (!fault)
      noteFault(failHere(rank, Cause::Invalid, who).getFailure());
    return;
  }
  if (std::any_of(peers.begin(), peers.end(), [&](const Peer &other) { return other.rank == guest.rank; }))
    return turnAway(peer, "another " + who.substr(2));
  cards[size_t(guest.rank)] = cleave::program::printable(guest.card);
  peers.push_back(std::move(peer));
}

//===----------------------------------------------------------------------===//
// The others
//===----------------------------------------------------------------------===//

/// Every port of the place is tried, until one is the hub's: it may not listen yet, or another service may be there.
Status Watch::connectToHub(const FindAddress &hub, int64_t deadline) {
  std::string where;
  std::optional<Dialer> dialer;
  while (getNow() < deadline) {
    cleave::program::Result<std::optional<Address>> known = hub();
    if (!known)
      return failHere(rank, Cause::Invalid, known.getError().message);
    if (const std::optional<Address> &address = *known) {
      where = " on " + cleave::program::printable(address->place.host);
      if (!dialer || own.secret != address->secret)
        dialer.emplace(own, /*host=*/0);
      own.secret = address->secret;
      dialer->setEndpoint(address->place);
    }
    std::vector<pollfd> polled;
    if (dialer)
      dialer->addPolls(polled);
    poll(polled.data(), polled.size(), 20);
    std::optional<Handshake> found = dialer ? dialer->advance() : std::nullopt;
    if (!found)
      continue;
    Peer peer;
    peer.rank = 0;
    peer.socket = found->take(peer.received);
    peer.lastHeard = getNow();
    peers.push_back(std::move(peer));
    dialer.reset();
    return awaitWelcome(deadline + kHubTime);
  }
  std::string others =
      dialer && dialer->isRefused() ? "; who is there has another secret, or is of another version" : "";
  return failHere(rank, Cause::Timeout, "cannot reach rank 0" + where + others);
}

/// The hub beats until all are here, and says what is wrong if they are not in time. What came with its proof counts, too.
Status Watch::awaitWelcome(int64_t deadline) {
  while (!isWelcome && !fault) {
    if (peers.front().socket >= 0)
      receive(peers.front());
    checkSilence(getNow());
    if (isWelcome || fault)
      break;
    if (getNow() > deadline)
      return failHere(rank, Cause::Timeout, "rank 0 did not say that all ranks are here");
    pollfd polled = {peers.front().socket, POLLIN, 0};
    poll(&polled, 1, kTickMilliseconds);
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
