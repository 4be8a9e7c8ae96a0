//===- Sockets.h - connections between processes ----------------*- C++ -*-===//
//
// What the watch (Watch.h) and ranks without MPI (Tcp.h) need of the network: where a process is, in words that can be sent;
// a port to listen at; a connection to it.
//
#ifndef CLEAVE_LIB_RUNTIME_SOCKETS_H
#define CLEAVE_LIB_RUNTIME_SOCKETS_H

#include "cleave/Runtime/Failure.h"
#include <functional>
#include <optional>
#include <vector>

namespace cleave::runtime {

/// Where a process can be reached: by any of its addresses, at one of these ports.
struct Place {
  /// What its own know, and strangers do not.
  std::string token;
  std::string host;
  /// Addresses of the host; empty: what the system knows of its name.
  std::vector<std::string> ips;
  /// In the order in which they are tried.
  std::vector<int> ports;
};
/// Where it is by now; nothing where that is not known yet.
using FindPlace = std::function<std::optional<Place>()>;

/// `token port host ip ip ..`, in one line.
std::string format(const Place &place);
std::optional<Place> parsePlace(const std::string &text);

/// As this machine calls itself.
std::string getHostName();
/// This machine, with all addresses that others may reach it by.
Place describeHere(std::string token, int port);

/// Listens at the first of `ports` that is free (0: any), which `port` is then. -1, and why, if none is.
int openPort(const std::vector<int> &ports, int &port, std::string &why);
/// One attempt at each address, of a second at most; -1 where nobody answers.
int connectTo(const Place &place, int port);
/// Small messages at once, and no call takes longer than a second.
void setUp(int socket);

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_SOCKETS_H
