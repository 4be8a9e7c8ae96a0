//===- Rendezvous.h - where ranks find rank 0 -------------------*- C++ -*-===//
//
//   given        --rendezvous or CLEAVE_RENDEZVOUS: host:port, file:PATH
//   else         what the launcher says (Launch.h): a host, and the first of some ports
//
#ifndef CLEAVE_LIB_RUNTIME_TCP_RENDEZVOUS_H
#define CLEAVE_LIB_RUNTIME_TCP_RENDEZVOUS_H

#include "../Sockets.h"
#include "cleave/Runtime/Launch.h"

namespace cleave::runtime {

/// A way for ranks to find rank 0: a place that all know before, or a file that rank 0 writes its place into.
struct Rendezvous {
  Place place;
  std::string file;

  /// For ranks that look for rank 0.
  FindPlace getFinder() const;
  /// Rank 0: says in the file where it is, whole or not at all.
  Status publish(const std::string &address, int rank) const;
  /// Rank 0: all have come, or it gives up.
  void withdraw() const;
};

/// What `text` says (`host:port`, `file:PATH`), or the launcher where it says nothing.
Status findRendezvous(const std::string &text, const Launch &launch, Rendezvous &rendezvous);

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_TCP_RENDEZVOUS_H
