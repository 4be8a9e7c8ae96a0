//===- LauncherStore.cpp - the secret goes through torchrun's store -------===//
//
// The protocol of torch's TCPStore, as far as one key needs it: a request is a byte and its operands, numbers are as the machine
// has them, texts and lists have their lengths in front as 64 bits.
//
//   validate  0, 0x3C85F7CE (32 bits)     no answer; first of all
//   set       1, key, value               no answer
//   get       3, key                      value
//   check     5, number of keys, keys     a byte: 0 if they are all there
//
//===----------------------------------------------------------------------===//
#include "LauncherStore.h"
#include "../Sockets.h"
#include "cleave/Program/Error.h"
#include "cleave/Runtime/FlightRecorder.h"

#include <cassert>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace cleave::runtime;
using cleave::program::concat;
using cleave::program::printable;

namespace {
enum class Request : uint8_t { Validate = 0, Set = 1, Get = 3, Check = 5 };
constexpr uint32_t kMagic = 0x3C85F7CE;

/// One connection to the store.
class Store {
public:
  ~Store() {
    if (socket >= 0)
      close(socket);
  }
  bool connect(const Launch &launch);
  bool set(const std::string &key, const std::string &value);
  /// Nothing where the store does not answer; empty where the key is not there yet.
  std::optional<std::string> get(const std::string &key);

private:
  static std::string format(const std::string &text) {
    uint64_t length = text.size();
    return std::string(reinterpret_cast<const char *>(&length), sizeof(length)) + text;
  }
  bool send(Request request, const std::string &operands);
  bool receive(void *to, size_t bytes) { return recv(socket, to, bytes, MSG_WAITALL) == ssize_t(bytes); }

  int socket = -1;
};
} // namespace

/// Each call on the socket takes a second at most.
bool Store::connect(const Launch &launch) {
  for (const sockaddr_in &to : listTargets({launch.host, {}, {launch.storePort}})) {
    socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setUp(socket);
    if (::connect(socket, reinterpret_cast<const sockaddr *>(&to), sizeof(to)) == 0)
      return send(Request::Validate, std::string(reinterpret_cast<const char *>(&kMagic), sizeof(kMagic)));
    close(socket);
    socket = -1;
  }
  return false;
}

bool Store::send(Request request, const std::string &operands) {
  std::string bytes = char(request) + operands;
  return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) == ssize_t(bytes.size());
}

bool Store::set(const std::string &key, const std::string &value) {
  return send(Request::Set, format(key) + format(value));
}

std::optional<std::string> Store::get(const std::string &key) {
  uint64_t one = 1, length = 0;
  uint8_t isMissing = 0;
  if (!send(Request::Check, std::string(reinterpret_cast<const char *>(&one), sizeof(one)) + format(key)) ||
      !receive(&isMissing, sizeof(isMissing)))
    return std::nullopt;
  if (isMissing)
    return "";
  std::string value;
  if (!send(Request::Get, format(key)) || !receive(&length, sizeof(length)) || length > 64)
    return std::nullopt;
  value.resize(length);
  return receive(value.data(), length) ? std::optional(value) : std::nullopt;
}

/// Rank 0 reads back what it has set: then it is there.
Status cleave::runtime::exchangeSecret(const Launch &launch, double deadline, Secret &secret) {
  assert(launch.storePort && "no store");
  Failure failure;
  failure.cause = Cause::Timeout;
  failure.rank = launch.rank;
  std::optional<Secret> drawn = launch.rank == 0 ? drawSecret() : std::nullopt;
  std::string key = "/cleave/" + launch.job, where = concat(printable(launch.host), ":", launch.storePort);
  failure.detail = concat("torchrun's store at ", where,
                          " does not answer as that of torch 2.2 or later; CLEAVE_SECRET, 32 "
                          "hexadecimal digits for all ranks, does without it");
  for (int64_t end = getNow() + int64_t(deadline * 1e9); getNow() < end;) {
    Store store;
    std::optional<std::string> value;
    if (store.connect(launch) && (!drawn || store.set(key, format(*drawn))))
      value = store.get(key);
    std::optional<Secret> found = value ? parseSecret(*value) : std::nullopt;
    if (found && (!drawn || *found == *drawn)) {
      secret = *found;
      return {};
    }
    if (value)
      failure.detail = concat("rank 0 has put no secret into torchrun's store at ", where);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return failure;
}
