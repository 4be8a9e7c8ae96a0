//===- Rendezvous.cpp - where ranks find rank 0 ---------------------------===//
//
// A place that is known before has a port that somebody else may have: then rank 0 takes one of the next, and the others try
// all of them. The file is made anew, for its user alone, and never through a link: who reads it knows the secret.
//
//===----------------------------------------------------------------------===//
#include "Rendezvous.h"
#include "LauncherStore.h"
#include "cleave/Program/Error.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace cleave::runtime;
using cleave::program::concat;
using cleave::program::makeError;
using cleave::program::printable;
using cleave::program::Result;

/// As many ports as are tried, where nobody has asked for one.
static constexpr int kPorts = 16;
/// More is no address.
static constexpr size_t kMostBytes = 4096;

static Status failFor(int rank, std::string detail) {
  Failure failure;
  failure.cause = Cause::Invalid;
  failure.rank = rank;
  failure.detail = std::move(detail);
  return failure;
}

//===----------------------------------------------------------------------===//
// The secret
//===----------------------------------------------------------------------===//

/// Of a place that is known before. Two jobs that were given one secret have different ones all the same, as far as the launcher
/// tells them apart.
static Status findSecret(const std::string &job, const Launch &launch, double deadline, Secret &secret) {
  if (const char *given = std::getenv("CLEAVE_SECRET")) {
    std::optional<Secret> parsed = parseSecret(given);
    if (!parsed)
      return failFor(launch.rank, "CLEAVE_SECRET is not 32 hexadecimal digits, as 'openssl rand -hex 16' prints them");
    secret = derive(*parsed, job);
    return {};
  }
  if (launch.storePort)
    return exchangeSecret(launch, deadline, secret);
  return failFor(launch.rank,
                 concat("ranks that meet at a known place need a secret, and ", launch.launcher,
                        " passes none on; set CLEAVE_SECRET to the same 32 hexadecimal digits for all ranks, as "
                        "'openssl rand -hex 16' prints them, or let them meet by --rendezvous file:PATH"));
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// Where rank 0 is told to be it listens, and nowhere else. Where that is the loopback all ranks are on this machine.
static Status findListeners(const Launch &launch, Rendezvous &rendezvous) {
  bool isLocal = launch.isOneMachine;
  const std::string &host = rendezvous.address.place.host;
  if (rendezvous.file.empty() && launch.rank == 0) {
    Result<in_addr> own = findOwnAddress(host);
    if (!own)
      return failFor(0, concat("rank 0 cannot listen at '", printable(host), "': ", own.getError().message,
                               "; --rendezvous takes an address of its machine, or 0.0.0.0:port on rank 0 for all of "
                               "them"));
    rendezvous.hub = *own;
  }
  if (rendezvous.file.empty())
    for (const sockaddr_in &target : listTargets({host, {}, {1}}))
      isLocal = isLocal || (ntohl(target.sin_addr.s_addr) >> 24 == 127 && host != getHostName());
  else
    rendezvous.hub = getAddress(isLocal ? Reach::Machine : Reach::Anybody);
  rendezvous.messages = getAddress(isLocal ? Reach::Machine : Reach::Anybody);
  return {};
}

/// What was asked for goes before what the launcher says.
static Status findPlace(const std::string &text, const Launch &launch, Rendezvous &rendezvous) {
  Endpoint &place = rendezvous.address.place;
  if (!text.empty()) {
    size_t colon = text.rfind(':');
    const char *digits = colon == std::string::npos ? "" : text.c_str() + colon + 1;
    char *end = nullptr;
    long port = std::strtol(digits, &end, 10);
    if (!*digits || *end || port <= 0 || port > 65535 || colon == 0)
      return failFor(launch.rank, concat("--rendezvous is '", printable(text), "', expected host:port or file:PATH"));
    place.host = text.substr(0, colon);
    place.ports = {int(port)};
    return {};
  }
  if (launch.host.empty())
    return failFor(launch.rank, concat(launch.launcher, " started rank ", launch.rank, " of ", launch.size,
                                       ", and does not say where rank 0 is reached", launch.hint,
                                       "; --rendezvous host:port or file:PATH does"));
  place.host = launch.host;
  for (int i = 0; i < kPorts && launch.port + i < 65536; ++i)
    place.ports.push_back(launch.port + i);
  return {};
}

Status cleave::runtime::findRendezvous(const std::string &text, const Launch &launch, double deadline,
                                       Rendezvous &rendezvous) {
  if (text.rfind("file:", 0) == 0 && text.size() > 5) {
    rendezvous.file = text.substr(5);
    return findListeners(launch, rendezvous);
  }
  Status status = findPlace(text, launch, rendezvous);
  if (status.isOk())
    status = findListeners(launch, rendezvous);
  // Who says where to meet may start ranks by several means.
  std::string job = text.empty() ? launch.launcher + (" " + launch.job) : "rendezvous " + launch.job;
  return status.isOk() ? findSecret(job, launch, deadline, rendezvous.address.secret) : status;
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

/// What is in the file; nothing where there is none. An error if it is not one that this user made for himself alone.
static Result<std::optional<std::string>> readPrivate(const std::string &path) {
  auto refuse = [&](const std::string &problem) {
    return makeError("cannot meet by '", printable(path), "': ", problem);
  };
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0 && errno == ENOENT)
    return std::optional<std::string>();
  if (file < 0)
    return refuse(errno == ELOOP ? "it is a symbolic link" : std::strerror(errno));
  struct stat status = {};
  std::string text(kMostBytes, 0);
  bool isKnown = fstat(file, &status) == 0;
  ssize_t got = isKnown && S_ISREG(status.st_mode) ? read(file, text.data(), text.size()) : 0;
  close(file);
  if (!isKnown || !S_ISREG(status.st_mode))
    return refuse("it is not a regular file");
  if (status.st_uid != geteuid())
    return refuse(concat("it belongs to user ", status.st_uid, ", and this process to user ", geteuid()));
  if (status.st_mode & 077)
    return refuse("others may read or write it, which only its user may (chmod 600)");
  text.resize(got > 0 ? size_t(got) : 0);
  return std::optional(std::move(text));
}

/// A file is looked into again each time: one of an earlier run may have been there.
FindAddress Rendezvous::getFinder() const {
  if (file.empty())
    return [address = address] { return std::optional<Address>(address); };
  return [file = file]() -> Result<std::optional<Address>> {
    Result<std::optional<std::string>> text = readPrivate(file);
    if (!text)
      return text.getError();
    return *text ? parseAddress(**text) : std::optional<Address>();
  };
}

/// Under another name first: who looks meanwhile finds none, that of an earlier run, or the whole new one.
Status Rendezvous::publish(const std::string &text, int rank) const {
  if (file.empty())
    return {};
  std::string other = concat(file, ".", getpid());
  Result<std::optional<std::string>> before = readPrivate(file);
  if (!before)
    return failFor(rank, before.getError().message);
  // An empty one is as mktemp makes it.
  if (*before && !(*before)->empty() && !parseAddress(**before))
    return failFor(rank, concat("cannot meet by '", printable(file), "': it is there, and holds something else"));
  (void)unlink(other.c_str());
  int made = open(other.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  std::string line = text + "\n";
  bool isWritten =
      made >= 0 && fchmod(made, 0600) == 0 && write(made, line.data(), line.size()) == ssize_t(line.size());
  int code = errno;
  if (made >= 0)
    close(made);
  if (isWritten && rename(other.c_str(), file.c_str()) == 0)
    return {};
  code = isWritten ? errno : code;
  if (made >= 0)
    (void)unlink(other.c_str());
  return failFor(rank, concat("cannot write '", printable(file), "': ", std::strerror(code)));
}

void Rendezvous::withdraw() const {
  if (!file.empty())
    (void)unlink(file.c_str());
}
