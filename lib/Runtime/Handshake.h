//===- Handshake.h - how connections between ranks begin --------*- C++ -*-===//
//
// Whoever listens at a port of a rank is the host, whoever comes is the guest. Each draws a nonce, and proves by it and by the
// secret (Secret.h) that it belongs to the run; a recording of it proves nothing.
//
//   host                          guest
//   ── banner: its nonce ─▶
//   ◀─ hello: who he is, his nonce, a proof over both nonces, purpose, ranks, size, program and card ──
//   ── proof over the same ─▶
//   ◀─ chosen ──                  of several ways to one host it takes this one
//
// Nothing here blocks, and nobody waits for anybody else: a Door listens to all who have come at once, a Dialer tries all
// addresses of a place at once. Who does not say the right thing in time is sent away.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_HANDSHAKE_H
#define CLEAVE_LIB_RUNTIME_HANDSHAKE_H

#include "Sockets.h"
#include "WatchFrame.h"
#include <poll.h>

namespace cleave::runtime {

/// Who a process is. All of it goes into proofs.
struct Identity {
  /// What connections are for: one that was made for the other is none.
  enum class Purpose : uint32_t { Watch, Messages };
  Purpose purpose = Purpose::Watch;
  Secret secret = {};
  int rank = 0, size = 1;
  /// A digest of what it runs.
  uint64_t program = 0;
  /// What it says of itself beside.
  std::string card;
};

/// One connection, on either side.
class Handshake {
public:
  enum class State {
    Going,
    Known,   ///< the other one knows the secret, and this side has proved that it does
    Refused, ///< the host does not take this rank for one of its run
    Failed,
  };

  /// The host's side of a connection that has been accepted.
  static Handshake accept(int socket, const Identity &own);
  /// The guest's side: begins to connect to what should be rank `host`.
  static Handshake connect(const sockaddr_in &to, const Identity &own, int host);
  Handshake(Handshake &&other);
  Handshake &operator=(Handshake &&other);
  /// Closes what nobody has taken.
  ~Handshake();

  /// Goes as far as it can without waiting.
  State advance();
  pollfd getPoll() const;
  /// Of a host: whether the guest has proved who he is. What is left is his choice.
  bool isProved() const { return hasProved; }
  /// Of a host: who has come, as he has proved.
  const Identity &getGuest() const { return guest; }
  /// The socket, which is the caller's from then on, and what came behind the handshake. Precondition: the other one is known.
  int take(std::string &rest);

private:
  Handshake(int socket, const Identity &own, int host, bool isHost);
  State advanceHost();
  State advanceGuest();
  bool finishConnecting();
  /// What both sides prove; `side` keeps one from being the other.
  Proof makeProof(const char *side) const;
  bool send(const Frame &frame);
  /// Reads what has come. False at the end of the connection.
  bool receive();

  int socket;
  const Identity *own;
  int host;
  bool isHost, isConnected, hasSaidHello = false, hasProved = false;
  int64_t began;
  Identity guest;
  Nonce hostNonce = {}, guestNonce = {};
  std::string received;
};

/// All who have come to a port, until it is known who they are.
class Door {
public:
  /// `own` must stay. The listener is the caller's.
  Door(int listener, const Identity &own) : listener(listener), own(own) {}

  void addPolls(std::vector<pollfd> &polls) const;
  /// Lets in all who have come, listens to them, and returns those who have proved that they are ranks of this run. There are
  /// never more than some hundred others: for a new one the oldest has to go.
  std::vector<Handshake> advance();
  /// How many have said that they are a rank of some run, and know another secret or none.
  unsigned getRefused() const { return refused; }

private:
  const int listener;
  const Identity &own;
  std::vector<Handshake> guests;
  unsigned refused = 0;
};

/// Looks for one rank at all addresses of its place at once, again and again.
class Dialer {
public:
  /// `own` must stay.
  Dialer(const Identity &own, int host) : own(own), host(host) {}

  /// Where it may be. Another place ends what is under way.
  void setEndpoint(const Endpoint &place);
  void addPolls(std::vector<pollfd> &polls) const;
  /// The rank, once it is found.
  std::optional<Handshake> advance();
  /// Whether somebody there belongs to a run, and not to that of this rank.
  bool isRefused() const { return refused; }

private:
  struct Target {
    sockaddr_in address;
    std::optional<Handshake> attempt;
    int64_t next = 0;
  };

  const Identity &own;
  const int host;
  std::string where;
  std::vector<Target> targets;
  bool refused = false;
};

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_HANDSHAKE_H
