//===- Rendezvous.h - where ranks find rank 0 -------------------*- C++ -*-===//
//
//   given        --rendezvous or CLEAVE_RENDEZVOUS: host:port, file:PATH
//   else         what the launcher says (Launch.h): a host, and the first of some ports
//
// And where the secret of the run comes from (Secret.h): rank 0 draws it, and writes it into the file, or hands it to the store of
// torchrun's agent; or all are given it, in CLEAVE_SECRET. What is known to others, as the number of a job, is none.
//
#ifndef CLEAVE_LIB_RUNTIME_TCP_RENDEZVOUS_H
#define CLEAVE_LIB_RUNTIME_TCP_RENDEZVOUS_H

#include "../Sockets.h"
#include "cleave/Runtime/Launch.h"

namespace cleave::runtime {

/// A way for ranks to find rank 0: a place that all know before, or a file that rank 0 writes its address into.
struct Rendezvous {
  Address address;
  std::string file;
  /// Where rank 0 listens for the others, and every rank for messages.
  in_addr hub = {}, messages = {};

  /// For ranks that look for rank 0.
  FindAddress getFinder() const;
  /// Rank 0: says in the file where it is, whole or not at all. Nobody but the user may read it.
  Status publish(const std::string &address, int rank) const;
  /// Rank 0: all have come, or it gives up.
  void withdraw() const;
};

/// What `text` says (`host:port`, `file:PATH`), or the launcher where it says nothing. May wait for torchrun's store, `deadline`
/// seconds at most.
Status findRendezvous(const std::string &text, const Launch &launch, double deadline, Rendezvous &rendezvous);

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_TCP_RENDEZVOUS_H
