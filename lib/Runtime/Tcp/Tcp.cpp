//===- Tcp.cpp - ranks that are processes, by connections -----------------===//
//
// First a star: the watch (Watch.h) connects all ranks with rank 0, which tells each where the others listen. Then each rank
// connects to those below it, by handshakes as there (Handshake.h), so that every pair has one connection, which messages of all
// groups share:
//
//   header (group, number, round, bytes) | message | header | message ..
//
// What comes before it is asked for is kept until it is. Nothing blocks: sockets are written and read as far as they go
// whenever this rank starts, advances or waits for something. What ends a connection the watch finds out.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/Tcp.h"
#include "../Handshake.h"
#include "../Processes.h"
#include "Rendezvous.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <thread>
#include <unistd.h>

using namespace cleave::runtime;
using cleave::program::Result;

static constexpr int kTickMilliseconds = 50;
/// Waiting is polling for as long as another rank may take to answer at once.
static constexpr int64_t kSpin = 1000000;

namespace {

struct Header {
  uint64_t group, number, round, bytes;
};

class TcpCommunicator final : public ProcessCommunicator {
public:
  TcpCommunicator(int rank, int size, const Options &options)
      : ProcessCommunicator(rank, size, options), links(size_t(size)) {
    enterWorld();
  }
  ~TcpCommunicator() override;

  /// Connects all ranks with each other.
  Status begin(const Rendezvous &rendezvous);

private:
  /// The connection with another rank.
  struct Link {
    int socket = -1;
    /// Headers, and what they announce.
    std::deque<std::pair<Header, Sending *>> out;
    uint64_t sent = 0; ///< of the first of them
    Header header = {};
    uint64_t received = 0; ///< of a header, then of the message
    bool hasHeader = false;
    /// What came with the handshake, and is not taken yet.
    std::string early;
    /// Why nothing more can come.
    std::string error;
    Message arriving;
    std::map<Key, std::deque<Message>> arrived;
  };

  std::unique_ptr<Sending> send(int peer, Key key, Message message, std::string &error) override;
  void moveConnections() override;
  void move(Receiving &receiving, std::string &error) override;
  void rest(int64_t nanoseconds) override;
  Status connectAll(int listener);
  void keep(int other, Handshake &handshake);
  std::string nameMissing() const;
  void flush(Link &link);
  bool takeBytes(Link &link, char *to, uint64_t bytes);
  void take(Link &link);
  void drop(Link &link);
  Status failHere(Cause cause, int peer, std::string detail) const;

  std::vector<Link> links;
};

} // namespace

Status TcpCommunicator::failHere(Cause cause, int peer, std::string detail) const {
  Failure failure;
  failure.cause = cause;
  failure.rank = rank;
  failure.peer = peer;
  failure.detail = std::move(detail);
  return failure;
}

//===----------------------------------------------------------------------===//
// Beginning and end
//===----------------------------------------------------------------------===//

/// Connections stay open until all have said goodbye: what is on its way arrives.
TcpCommunicator::~TcpCommunicator() {
  watch.leave();
  for (Link &link : links)
    drop(link);
}

/// The port for messages is open before anybody is told of it, so nobody comes in vain. A file that says where rank 0 is goes
/// away as soon as all have come, or never will: the next run must not find it.
Status TcpCommunicator::begin(const Rendezvous &rendezvous) {
  std::string address;
  Result<OpenPort> port = openPort(rendezvous.messages, {0});
  if (!port)
    return failHere(Cause::System, -1, "cannot open a port: " + port.getError().message);
  Status status;
  bool isPublished = false;
  if (rank == 0) {
    status = rendezvous.file.empty()
                 ? watch.listen(rendezvous.hub, rendezvous.address.place.ports, rendezvous.address.secret, address)
                 : watch.listen(rendezvous.hub, address);
    if (status.isOk())
      status = rendezvous.publish(address, rank);
    isPublished = status.isOk();
  }
  if (status.isOk())
    status = watch.begin(rendezvous.getFinder(), format(describeHere(rendezvous.messages, port->number)));
  // What was there and is no address is another's.
  if (isPublished)
    rendezvous.withdraw();
  if (status.isOk())
    status = connectAll(port->socket);
  close(port->socket);
  return status;
}

/// The ranks that have no connection.
std::string TcpCommunicator::nameMissing() const {
  std::string missing;
  for (int other = 0; other < size; ++other)
    if (other != rank && links[size_t(other)].socket < 0)
      missing += (missing.empty() ? "" : ", ") + std::to_string(other);
  return missing;
}

/// Messages may have come already.
void TcpCommunicator::keep(int other, Handshake &handshake) {
  Link &link = links[size_t(other)];
  drop(link);
  link.socket = handshake.take(link.early);
}

/// To those below, and from those above, all at once; strangers keep nobody waiting. The watch looks after the others
/// meanwhile: if one is gone, nobody waits to the end.
Status TcpCommunicator::connectAll(int listener) {
  int64_t deadline = getNow() + int64_t(options.deadline * 1e9);
  Identity own;
  own.purpose = Identity::Purpose::Messages;
  own.secret = watch.getSecret();
  own.rank = rank;
  own.size = size;
  own.program = options.program;
  Door door(listener, own);
  std::map<int, Dialer> dialers;
  for (int other = 0; other < rank; ++other)
    if (std::optional<Endpoint> place = parseEndpoint(watch.getCards()[size_t(other)]))
      dialers.emplace(other, Dialer(own, other)).first->second.setEndpoint(*place);
  while (!nameMissing().empty()) {
    if (watch.getFailure().isRaised())
      return watch.getFailure().get();
    if (getNow() >= deadline)
      return raise(failHere(Cause::Timeout, -1, "no connection for messages with rank " + nameMissing()).getFailure());
    std::vector<pollfd> polled;
    door.addPolls(polled);
    for (const auto &dialer : dialers)
      dialer.second.addPolls(polled);
    poll(polled.data(), polled.size(), kTickMilliseconds);
    for (Handshake &guest : door.advance())
      if (int other = guest.getGuest().rank; guest.getGuest().size == size && other > rank && other < size)
        keep(other, guest);
    for (auto dialer = dialers.begin(); dialer != dialers.end();) {
      std::optional<Handshake> found = dialer->second.advance();
      if (found)
        keep(dialer->first, *found);
      dialer = found ? dialers.erase(dialer) : std::next(dialer);
    }
  }
  return {};
}

std::unique_ptr<Communicator> cleave::runtime::openTcp(const Options &asked, const std::string &rendezvous,
                                                       Status &status) {
  Options options = asked;
  options.silence = options.silence > 0 ? options.silence : kProcessSilence;
  std::optional<Launch> launch;
  status = readLaunch([](const char *name) { return std::getenv(name); }, launch);
  if (status.isOk() && !launch) {
    Failure failure;
    failure.cause = Cause::Invalid;
    failure.detail = "no launcher says which rank this process is";
    status = failure;
  }
  Rendezvous meeting;
  const char *given = std::getenv("CLEAVE_RENDEZVOUS");
  if (status.isOk())
    status = findRendezvous(rendezvous.empty() && given ? given : rendezvous, *launch, options.deadline, meeting);
  if (!status.isOk())
    return nullptr;
  auto communicator = std::make_unique<TcpCommunicator>(launch->rank, launch->size, options);
  status = communicator->begin(meeting);
  return status.isOk() ? std::move(communicator) : nullptr;
}

// For who opens this library by name.
extern "C" {
const char *cleave_tcp_version() { return CLEAVE_VERSION; }
Communicator *cleave_tcp_open(const Options &options, const std::string &rendezvous, Status &status) {
  return openTcp(options, rendezvous, status).release();
}
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// Twice does no harm.
void TcpCommunicator::drop(Link &link) {
  if (link.socket >= 0)
    close(link.socket);
  link.socket = -1;
}

/// As much as the connection takes at once goes; the rest when this rank comes by.
std::unique_ptr<ProcessCommunicator::Sending> TcpCommunicator::send(int peer, Key key, Message message, std::string &) {
  auto sending = std::make_unique<Sending>();
  sending->peer = peer;
  sending->key = key;
  sending->message = std::move(message);
  Link &link = links[size_t(peer)];
  link.out.push_back({{key.group, key.number, key.round, sending->message.size()}, sending.get()});
  flush(link);
  return sending;
}

/// All that the connection has room for, a header and what it announces in one call.
void TcpCommunicator::flush(Link &link) {
  while (link.socket >= 0 && !link.out.empty()) {
    auto &[header, sending] = link.out.front();
    uint64_t ofHeader = std::min<uint64_t>(link.sent, sizeof(Header)), ofMessage = link.sent - ofHeader;
    iovec parts[2] = {{reinterpret_cast<char *>(&header) + ofHeader, sizeof(Header) - ofHeader},
                      {sending->message.data() + ofMessage, header.bytes - ofMessage}};
    msghdr call = {};
    call.msg_iov = parts;
    call.msg_iovlen = 2;
    ssize_t sent = sendmsg(link.socket, &call, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0)
      return;
    link.sent += uint64_t(sent);
    if (link.sent < sizeof(Header) + header.bytes)
      continue;
    sending->isSent = true;
    link.out.pop_front();
    link.sent = 0;
  }
}

/// The rest of `bytes`, as far as it has come; true when all of it has. What came with the handshake goes first.
bool TcpCommunicator::takeBytes(Link &link, char *to, uint64_t bytes) {
  while (link.received < bytes) {
    uint64_t early = std::min<uint64_t>(link.early.size(), bytes - link.received);
    std::copy_n(link.early.begin(), early, to + link.received);
    link.early.erase(0, early);
    ssize_t got = ssize_t(early);
    if (early == 0)
      got = recv(link.socket, to + link.received, bytes - link.received, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
      drop(link);
    if (got <= 0)
      return false;
    link.received += uint64_t(got);
  }
  link.received = 0;
  return true;
}

/// Messages of all groups come in the order in which they were sent, which need not be that in which they are wanted here.
/// No length is believed that no message of this run has: there may be no memory for it.
void TcpCommunicator::take(Link &link) {
  while (link.socket >= 0) {
    if (!link.hasHeader) {
      if (!takeBytes(link, reinterpret_cast<char *>(&link.header), sizeof(Header)))
        return;
      if (std::optional<std::string> tooLarge = findTooLarge(int(&link - links.data()), link.header.bytes)) {
        link.error = std::move(*tooLarge);
        return drop(link);
      }
      link.hasHeader = true;
      link.arriving = takeSpare();
      link.arriving.resize(link.header.bytes);
    }
    if (!takeBytes(link, link.arriving.data(), link.header.bytes))
      return;
    link.hasHeader = false;
    link.arrived[{GroupId(link.header.group), link.header.number, unsigned(link.header.round)}].push_back(
        std::move(link.arriving));
  }
}

/// Reads also where this rank has only to send: the other may have to get rid of something first.
void TcpCommunicator::moveConnections() {
  for (Link &link : links) {
    flush(link);
    take(link);
  }
}

/// A connection that has ended makes nothing fail here: the watch knows who is gone, and whether he said goodbye.
void TcpCommunicator::move(Receiving &receiving, std::string &error) {
  Link &link = links[size_t(receiving.peer)];
  error = link.error;
  auto found = link.arrived.find(receiving.key);
  if (found == link.arrived.end())
    return;
  receiving.message = std::move(found->second.front());
  receiving.isThere = true;
  found->second.pop_front();
  if (found->second.empty())
    link.arrived.erase(found);
}

/// Sleeps until something comes, and polls again soon: others may have room for what this rank sends.
void TcpCommunicator::rest(int64_t nanoseconds) {
  std::this_thread::yield();
  if (nanoseconds < kSpin)
    return;
  std::vector<pollfd> polled;
  for (const Link &link : links)
    polled.push_back({link.socket, short(link.out.empty() ? POLLIN : POLLIN | POLLOUT), 0});
  poll(polled.data(), polled.size(), 10);
  // Of ranks that are ahead, too: what nobody takes would end every sleep.
  for (size_t i = 0; i < links.size(); ++i)
    if (polled[i].revents & POLLIN)
      take(links[i]);
}
