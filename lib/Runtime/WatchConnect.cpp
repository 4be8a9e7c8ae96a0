//===- WatchConnect.cpp - a star of connections ---------------------------===//
//
// Rank 0 opens a port and draws a token; its address, `token port host ip ip ..`, reaches the others by other means. They
// say the token and their rank. Whoever else finds the port is sent away.
//
//===----------------------------------------------------------------------===//
#include "Watch.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sstream>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace cleave::runtime;

static Status failHere(int rank, Cause cause, std::string detail) {
  Failure failure;
  failure.cause = cause;
  failure.rank = rank;
  failure.detail = std::move(detail);
  return failure;
}

static std::string getHostName() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name[0] ? name : "?";
}

//===----------------------------------------------------------------------===//
// Rank 0
//===----------------------------------------------------------------------===//

/// The IPv4 addresses of this machine, each behind a blank.
static std::string listAddresses() {
  std::string text;
  ifaddrs *interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0)
    return text;
  for (ifaddrs *at = interfaces; at; at = at->ifa_next) {
    if (!at->ifa_addr || at->ifa_addr->sa_family != AF_INET || (at->ifa_flags & IFF_LOOPBACK) || text.size() > 100)
      continue;
    char address[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in *>(at->ifa_addr)->sin_addr, address, sizeof(address));
    text += std::string(" ") + address;
  }
  freeifaddrs(interfaces);
  return text;
}

Status Watch::listen(std::string &address) {
  sockaddr_in any = {};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t length = sizeof(any);
  listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, reinterpret_cast<sockaddr *>(&any), sizeof(any)) != 0 ||
      ::listen(listener, SOMAXCONN) != 0 || getsockname(listener, reinterpret_cast<sockaddr *>(&any), &length) != 0 ||
      getrandom(&token, sizeof(token), 0) != sizeof(token))
    return failHere(rank, Cause::System, std::string("cannot open a port: ") + std::strerror(errno));
  address = std::to_string(token) + " " + std::to_string(ntohs(any.sin_port)) + " " + getHostName() + listAddresses();
  return {};
}

static void setUp(int socket) {
  int one = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  timeval second = {1, 0};
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof(second));
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
}

/// The first frame of a connection, if it comes within a second.
static bool readHello(int socket, std::string &received, Frame &frame) {
  char buffer[256];
  while (!takeFrame(received, frame)) {
    ssize_t size = recv(socket, buffer, sizeof(buffer), 0);
    if (size <= 0 || received.size() > sizeof(buffer))
      return false;
    received.append(buffer, size);
  }
  return frame.kind == Frame::Kind::Hello;
}

Status Watch::acceptAll(int64_t deadline) {
  std::vector<bool> isHere(size);
  while (peers.size() + 1 < size_t(size)) {
    int64_t left = (deadline - getNow()) / 1000000;
    pollfd polled = {listener, POLLIN, 0};
    if (left <= 0 || poll(&polled, 1, int(left)) < 0) {
      std::string missing;
      for (int other = 1; other < size; ++other)
        if (!isHere[other])
          missing += (missing.empty() ? "" : ", ") + std::to_string(other);
      return failHere(rank, Cause::Timeout, "no connection from rank " + missing);
    }
    Peer peer;
    peer.socket = polled.revents ? accept4(listener, nullptr, nullptr, SOCK_CLOEXEC) : -1;
    if (peer.socket < 0)
      continue;
    setUp(peer.socket);
    Frame hello;
    bool isOurs = readHello(peer.socket, peer.received, hello) && hello.text == std::to_string(token) &&
                  hello.about > 0 && hello.about < size && !isHere[hello.about];
    if (!isOurs) {
      close(peer.socket);
      continue;
    }
    peer.rank = hello.about;
    isHere[hello.about] = true;
    peers.push_back(std::move(peer));
  }
  return {};
}

//===----------------------------------------------------------------------===//
// The others
//===----------------------------------------------------------------------===//

static int tryConnect(const std::string &ip, int port) {
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(uint16_t(port));
  if (inet_pton(AF_INET, ip.c_str(), &to.sin_addr) != 1)
    return -1;
  int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setUp(descriptor); // SO_SNDTIMEO bounds connecting, too
  if (connect(descriptor, reinterpret_cast<sockaddr *>(&to), sizeof(to)) == 0)
    return descriptor;
  close(descriptor);
  return -1;
}

Status Watch::connectTo(const std::string &address, int64_t deadline) {
  std::istringstream words(address);
  std::string itsToken, host, ip;
  int port = 0;
  words >> itsToken >> port >> host;
  std::vector<std::string> ips;
  if (host == getHostName())
    ips.push_back("127.0.0.1");
  while (words >> ip)
    ips.push_back(ip);
  while (getNow() < deadline) {
    for (const std::string &candidate : ips) {
      int descriptor = tryConnect(candidate, port);
      if (descriptor < 0)
        continue;
      peers.emplace_back();
      peers.back().rank = 0;
      peers.back().socket = descriptor;
      send(peers.back(), Kind::Hello, rank, itsToken);
      return {};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return failHere(rank, Cause::Timeout, "cannot reach rank 0 on " + host);
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
