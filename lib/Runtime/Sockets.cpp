//===- Sockets.cpp - connections between processes ------------------------===//
//
// IPv4. A process on the same host is reached by the loopback first, so that ranks of one machine need no network.
//
//===----------------------------------------------------------------------===//
#include "Sockets.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sstream>
#include <sys/socket.h>
#include <unistd.h>

using namespace cleave::runtime;

std::string cleave::runtime::getHostName() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name[0] ? name : "?";
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// Only the first port: a place that is told is one that somebody listens at.
std::string cleave::runtime::format(const Place &place) {
  std::string text = place.token + " " + std::to_string(place.ports.front()) + " " + place.host;
  for (const std::string &ip : place.ips)
    text += " " + ip;
  return text;
}

std::optional<Place> cleave::runtime::parsePlace(const std::string &text) {
  std::istringstream words(text);
  Place place;
  int port = 0;
  if (!(words >> place.token >> port >> place.host) || port <= 0 || port > 65535)
    return std::nullopt;
  place.ports = {port};
  for (std::string ip; words >> ip;)
    place.ips.push_back(ip);
  return place;
}

/// Those of all interfaces that are up, but for the loopback; as many as fit into a line.
static std::vector<std::string> listAddresses() {
  std::vector<std::string> ips;
  ifaddrs *interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0)
    return ips;
  for (ifaddrs *at = interfaces; at; at = at->ifa_next) {
    if (!at->ifa_addr || at->ifa_addr->sa_family != AF_INET || (at->ifa_flags & IFF_LOOPBACK) || ips.size() > 6)
      continue;
    char address[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in *>(at->ifa_addr)->sin_addr, address, sizeof(address));
    ips.push_back(address);
  }
  freeifaddrs(interfaces);
  return ips;
}

Place cleave::runtime::describeHere(std::string token, int port) {
  return {std::move(token), getHostName(), listAddresses(), {port}};
}

//===----------------------------------------------------------------------===//
// Ports
//===----------------------------------------------------------------------===//

int cleave::runtime::openPort(const std::vector<int> &ports, int &port, std::string &why) {
  for (int wanted : ports) {
    sockaddr_in any = {};
    any.sin_family = AF_INET;
    any.sin_port = htons(uint16_t(wanted));
    any.sin_addr.s_addr = htonl(INADDR_ANY);
    socklen_t length = sizeof(any);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // A port that an earlier run has just left is free. (Linux refuses one that somebody listens at all the same.)
    int one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (listener >= 0 && bind(listener, reinterpret_cast<sockaddr *>(&any), sizeof(any)) == 0 &&
        listen(listener, SOMAXCONN) == 0 && getsockname(listener, reinterpret_cast<sockaddr *>(&any), &length) == 0) {
      port = ntohs(any.sin_port);
      return listener;
    }
    why = std::strerror(errno);
    if (listener >= 0)
      close(listener);
  }
  return -1;
}

void cleave::runtime::setUp(int socket) {
  int one = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  timeval second = {1, 0};
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof(second));
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
}

/// A machine that is not there says nothing: then a second is all that is lost.
static int tryAddress(const sockaddr_in &to) {
  int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setUp(descriptor); // SO_SNDTIMEO bounds connecting, too
  if (connect(descriptor, reinterpret_cast<const sockaddr *>(&to), sizeof(to)) == 0)
    return descriptor;
  close(descriptor);
  return -1;
}

/// The addresses of a name, as far as the system knows it.
static std::vector<sockaddr_in> resolve(const std::string &host) {
  std::vector<sockaddr_in> found;
  addrinfo hints = {}, *list = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0)
    return found;
  for (addrinfo *at = list; at; at = at->ai_next)
    found.push_back(*reinterpret_cast<sockaddr_in *>(at->ai_addr));
  freeaddrinfo(list);
  return found;
}

int cleave::runtime::connectTo(const Place &place, int port) {
  std::vector<std::string> names = place.ips;
  if (names.empty())
    names.push_back(place.host);
  if (place.host == getHostName())
    names.insert(names.begin(), "127.0.0.1");
  for (const std::string &name : names)
    for (sockaddr_in to : resolve(name)) {
      to.sin_port = htons(uint16_t(port));
      if (int descriptor = tryAddress(to); descriptor >= 0)
        return descriptor;
    }
  return -1;
}
