//===- Sockets.cpp - connections between processes ------------------------===//
//
// IPv4. A process on the same host is reached by the loopback first, so that ranks of one machine need no network.
//
//===----------------------------------------------------------------------===//
#include "Sockets.h"

#include <algorithm>
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
using cleave::program::makeError;
using cleave::program::Result;

std::string cleave::runtime::getHostName() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name[0] ? name : "?";
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// Only the first port: a place that is told is one that somebody listens at.
std::string cleave::runtime::format(const Endpoint &place) {
  std::string text = std::to_string(place.ports.front()) + " " + place.host;
  for (const std::string &ip : place.ips)
    text += " " + ip;
  return text;
}

std::optional<Endpoint> cleave::runtime::parseEndpoint(const std::string &text) {
  std::istringstream words(text);
  Endpoint place;
  int port = 0;
  if (!(words >> port >> place.host) || port <= 0 || port > 65535)
    return std::nullopt;
  place.ports = {port};
  for (std::string ip; words >> ip;)
    place.ips.push_back(ip);
  return place;
}

std::string cleave::runtime::format(const Address &address) {
  return format(address.secret) + " " + format(address.place);
}

std::optional<Address> cleave::runtime::parseAddress(const std::string &text) {
  size_t blank = text.find(' ');
  if (blank == std::string::npos)
    return std::nullopt;
  std::optional<Secret> secret = parseSecret(std::string_view(text).substr(0, blank));
  std::optional<Endpoint> place = parseEndpoint(text.substr(blank));
  if (!secret || !place)
    return std::nullopt;
  return Address{*secret, *place};
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

Endpoint cleave::runtime::describeHere(in_addr address, int port) {
  if (address.s_addr == htonl(INADDR_ANY))
    return {getHostName(), listAddresses(), {port}};
  char text[INET_ADDRSTRLEN];
  inet_ntop(AF_INET, &address, text, sizeof(text));
  return {getHostName(), {text}, {port}};
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

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

in_addr cleave::runtime::getAddress(Reach reach) {
  return {htonl(reach == Reach::Machine ? INADDR_LOOPBACK : INADDR_ANY)};
}

/// A socket can be bound to addresses of this machine, and to no others.
static bool isOwn(in_addr address) {
  sockaddr_in own = {};
  own.sin_family = AF_INET;
  own.sin_addr = address;
  int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool isBound = descriptor >= 0 && bind(descriptor, reinterpret_cast<sockaddr *>(&own), sizeof(own)) == 0;
  if (descriptor >= 0)
    close(descriptor);
  return isBound;
}

Result<in_addr> cleave::runtime::findOwnAddress(const std::string &host) {
  std::vector<sockaddr_in> found = resolve(host);
  for (const sockaddr_in &each : found) {
    if (!isOwn(each.sin_addr))
      continue;
    in_addr literal;
    bool isLoopback = ntohl(each.sin_addr.s_addr) >> 24 == 127;
    bool isNamed = inet_pton(AF_INET, host.c_str(), &literal) == 1 || host == "localhost";
    return isLoopback && !isNamed ? getAddress(Reach::Anybody) : each.sin_addr;
  }
  // As Slurm calls a node, which need not be a name that anybody looks up.
  if (host == getHostName())
    return getAddress(Reach::Anybody);
  return makeError(found.empty() ? "its address is not known" : "it is not an address of this machine");
}

std::vector<sockaddr_in> cleave::runtime::listTargets(const Endpoint &place) {
  std::vector<std::string> names = place.ips;
  if (names.empty())
    names.push_back(place.host);
  if (place.host == getHostName() && std::find(names.begin(), names.end(), "127.0.0.1") == names.end())
    names.insert(names.begin(), "127.0.0.1");
  std::vector<sockaddr_in> targets;
  for (const std::string &name : names)
    for (sockaddr_in to : resolve(name))
      for (int port : place.ports) {
        to.sin_port = htons(uint16_t(port));
        targets.push_back(to);
      }
  return targets;
}

//===----------------------------------------------------------------------===//
// Ports
//===----------------------------------------------------------------------===//

Result<OpenPort> cleave::runtime::openPort(in_addr address, const std::vector<int> &ports) {
  int code = EINVAL;
  for (int wanted : ports) {
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_port = htons(uint16_t(wanted));
    at.sin_addr = address;
    socklen_t length = sizeof(at);
    // Accepting must not block where somebody has come and gone.
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    // A port that an earlier run has just left is free. (Linux refuses one that somebody listens at all the same.)
    int one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (listener >= 0 && bind(listener, reinterpret_cast<sockaddr *>(&at), sizeof(at)) == 0 &&
        listen(listener, SOMAXCONN) == 0 && getsockname(listener, reinterpret_cast<sockaddr *>(&at), &length) == 0)
      return OpenPort{listener, ntohs(at.sin_port)};
    code = errno;
    if (listener >= 0)
      close(listener);
  }
  return makeError(std::strerror(code));
}

void cleave::runtime::setUp(int socket) {
  int one = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  timeval second = {1, 0};
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof(second));
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
}
