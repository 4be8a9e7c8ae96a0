//===- Tcp.h - ranks that are processes, by connections ---------*- C++ -*-===//
//
// Lies in a library of its own, libcleave_tcp. Needs nothing but a launcher that says which rank a process is, and where rank 0
// can be reached. All ranks are connected with rank 0 first, which sees that each is there once, then with each other:
//
//   rank 1 ─▶ rank 0 ◀─ rank 2        hello, beats, failures
//   rank 2 ─▶ rank 1                  messages, between every two
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_TCP_H
#define CLEAVE_RUNTIME_TCP_H

#include "cleave/Runtime/Communicator.h"

namespace cleave::runtime {

/// The communicator of this process, one rank of those that a launcher started (Launch.h); null, and a failure, if a rank does
/// not come. `rendezvous` says where rank 0 is reached: `host:port`, `file:PATH` of a file that all ranks see, or nothing, where
/// CLEAVE_RENDEZVOUS or the launcher says it. After a failure the process must exit with another code than 0.
std::unique_ptr<Communicator> openTcp(const Options &options, const std::string &rendezvous, Status &status);

} // namespace cleave::runtime

#endif // CLEAVE_RUNTIME_TCP_H
