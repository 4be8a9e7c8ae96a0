//===- Sockets.h - connections between processes ----------------*- C++ -*-===//
//
// What the watch (Watch.h) and ranks without MPI (Tcp.h) need of the network: where a process is, in words that can be sent,
// and a port to listen at. How connections begin is in Handshake.h.
//
#ifndef CLEAVE_LIB_RUNTIME_SOCKETS_H
#define CLEAVE_LIB_RUNTIME_SOCKETS_H

#include "Secret.h"
#include "cleave/Program/Error.h"
#include "cleave/Runtime/Failure.h"
#include <functional>
#include <netinet/in.h>
#include <optional>
#include <vector>

namespace cleave::runtime {

/// Where a process can be reached: by any of its addresses, at one of these ports.
struct Endpoint {
  std::string host;
  /// Addresses of the host; empty: what the system knows of its name.
  std::vector<std::string> ips;
  /// In the order in which they are tried.
  std::vector<int> ports;
};
/// Where rank 0 is, for those who may know.
struct Address {
  Secret secret = {};
  Endpoint place;
};
/// Where rank 0 is by now: nothing where that is not known yet, an error where it never will be.
using FindAddress = std::function<program::Result<std::optional<Address>>()>;

/// `port host ip ip ..`, in one line.
std::string format(const Endpoint &place);
std::optional<Endpoint> parseEndpoint(const std::string &text);
/// The same behind the secret's digits.
std::string format(const Address &address);
std::optional<Address> parseAddress(const std::string &text);

/// As this machine calls itself.
std::string getHostName();

/// Which of its addresses a process listens at.
enum class Reach {
  Anybody, ///< all
  Machine, ///< the loopback: processes of this machine
};
in_addr getAddress(Reach reach);
/// The one of this machine that `host` names. A name of this machine that it knows as its loopback (127.0.1.1 of /etc/hosts) says
/// nothing of how others reach it: all addresses. An error if there is none.
program::Result<in_addr> findOwnAddress(const std::string &host);

/// A socket that listens, and its port.
struct OpenPort {
  int socket = -1, number = 0;
};
/// Listens at the first of `ports` that is free (0: any). An error if none is.
program::Result<OpenPort> openPort(in_addr address, const std::vector<int> &ports);
/// A port of this machine as others may reach it.
Endpoint describeHere(in_addr address, int port);
/// Where connections to a place are tried.
std::vector<sockaddr_in> listTargets(const Endpoint &place);
/// Small messages at once, and no call takes longer than a second.
void setUp(int socket);

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_SOCKETS_H
