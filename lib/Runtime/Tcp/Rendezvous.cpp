//===- Rendezvous.cpp - where ranks find rank 0 ---------------------------===//
//
// A place that is known before has a port that somebody else may have: then rank 0 takes one of the next, and the others try
// them in the same order. The token is made of what the launcher calls the job, so that ranks of two jobs that come to one
// port are told apart.
//
//===----------------------------------------------------------------------===//
#include "Rendezvous.h"
#include "cleave/Program/Digest.h"
#include "cleave/Runtime/Files.h"

#include <cstdlib>
#include <unistd.h>

using namespace cleave::runtime;

/// As many ports as are tried, where nobody has asked for one.
static constexpr int kPorts = 16;

static Status failFor(int rank, std::string detail) {
  Failure failure;
  failure.cause = Cause::Invalid;
  failure.rank = rank;
  failure.detail = std::move(detail);
  return failure;
}

/// What was asked for goes before what the launcher says.
Status cleave::runtime::findRendezvous(const std::string &text, const Launch &launch, Rendezvous &rendezvous) {
  rendezvous.place.token = std::to_string(cleave::program::hashBytes(std::string(launch.launcher) + " " + launch.job));
  if (text.rfind("file:", 0) == 0 && text.size() > 5) {
    rendezvous.file = text.substr(5);
    return {};
  }
  if (!text.empty()) {
    size_t colon = text.rfind(':');
    const char *digits = colon == std::string::npos ? "" : text.c_str() + colon + 1;
    char *end = nullptr;
    long port = std::strtol(digits, &end, 10);
    if (!*digits || *end || port <= 0 || port > 65535 || colon == 0)
      return failFor(launch.rank, "--rendezvous is '" + text + "', expected host:port or file:PATH");
    rendezvous.place.host = text.substr(0, colon);
    rendezvous.place.ports = {int(port)};
    // Who says where to meet may start ranks by several means.
    rendezvous.place.token = std::to_string(cleave::program::hashBytes("rendezvous " + launch.job));
    return {};
  }
  if (launch.host.empty())
    return failFor(launch.rank, std::string(launch.launcher) + " started rank " + std::to_string(launch.rank) + " of " +
                                    std::to_string(launch.size) + ", and does not say where rank 0 is reached" +
                                    launch.hint + "; --rendezvous host:port or file:PATH does");
  rendezvous.place.host = launch.host;
  for (int i = 0; i < kPorts && launch.port + i < 65536; ++i)
    rendezvous.place.ports.push_back(launch.port + i);
  return {};
}

/// A file is looked into again each time: one of an earlier run may have been there.
FindPlace Rendezvous::getFinder() const {
  if (file.empty())
    return [place = place] { return std::optional<Place>(place); };
  return [file = file]() -> std::optional<Place> {
    FileBytes bytes;
    if (bytes.read(file))
      return std::nullopt;
    return parsePlace(std::string(bytes.get()));
  };
}

/// Who looks meanwhile finds the old file or the new one.
Status Rendezvous::publish(const std::string &address, int rank) const {
  if (!file.empty())
    if (cleave::program::Status error = writeFile(file, address + "\n"))
      return failFor(rank, error->message);
  return {};
}

void Rendezvous::withdraw() const {
  if (!file.empty())
    (void)unlink(file.c_str());
}
