//===- Watch.cpp - signs of life between processes ------------------------===//
//
// The life of a watch: connect, then one loop of poll, read, check and beat until there is a fault or nobody is left. Its
// connections are in WatchConnect.cpp.
//
//===----------------------------------------------------------------------===//
#include "Watch.h"
#include "cleave/Program/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <poll.h>
#include <sstream>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace cleave::runtime;

static constexpr int64_t kSecond = 1000000000, kBeatEvery = kSecond / 10;
static constexpr int kTickMilliseconds = 50;
/// Of one connection, before it is looked at: more than a frame.
static constexpr size_t kMostReceived = size_t(1) << 22;
/// Of an error that a goodbye takes along; the rest is cut off.
static constexpr size_t kLongestReason = 4096;
/// How long logs may take to arrive at the hub, and how long others wait for the hub to be done.
static constexpr int64_t kRecordTime = kSecond / 2, kReleaseTime = kSecond;

Watch::Watch(int rank, int size, const Options &options)
    : rank(rank), size(size), options(options), wakeup(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), leftAt(size),
      whyLeft(size) {}

void Watch::leave() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    leaving = true;
  }
  uint64_t one = 1;
  (void)!write(wakeup, &one, sizeof(one));
  thread.join();
}

/// Its connections stay open meanwhile: who is late reads what was sent, and finds nobody gone.
void Watch::leave(const std::string &why) {
  std::unique_lock<std::mutex> lock(mutex);
  leaving = true;
  whyLeaving = why.substr(0, kLongestReason);
  uint64_t one = 1;
  (void)!write(wakeup, &one, sizeof(one));
  changed.wait_for(lock, std::chrono::nanoseconds(int64_t(options.deadline * kSecond)), [&] { return isFinished; });
}

Watch::~Watch() {
  leave();
  for (Peer &peer : peers)
    if (peer.socket >= 0)
      close(peer.socket);
  for (int descriptor : {listener, wakeup})
    if (descriptor >= 0)
      close(descriptor);
}

/// Where the hub is said to be does not change.
Status Watch::begin(const std::string &address, const std::string &itsCard) {
  return begin([&] { return parseAddress(address); }, itsCard);
}

Status Watch::begin(const FindAddress &hub, const std::string &itsCard) {
  own.rank = rank;
  own.size = size;
  own.program = options.program;
  own.card = itsCard;
  int64_t deadline = getNow() + int64_t(options.deadline * kSecond);
  Status status = isHub() ? acceptAll(deadline) : connectToHub(hub, deadline);
  if (!status.isOk())
    return status;
  for (Peer &peer : peers)
    peer.lastHeard = getNow();
  auto work = [this] {
    loop();
    std::lock_guard<std::mutex> lock(mutex);
    isFinished = true;
    changed.notify_all();
  };
  if (program::Status error = thread.start(work)) {
    Failure failure;
    failure.cause = Cause::System;
    failure.rank = rank;
    failure.detail = error->message;
    return failure;
  }
  return {};
}

void Watch::raise(const Failure &first) {
  std::unique_lock<std::mutex> lock(mutex);
  if (!wanted)
    wanted = first;
  uint64_t one = 1;
  (void)!write(wakeup, &one, sizeof(one));
  // The thread gives up on the others by then; where it does not run, the failure is this rank's own.
  changed.wait_for(lock, std::chrono::nanoseconds(kReleaseTime + kSecond), [&] { return failure.isRaised(); });
  failure.raise(first);
}

double Watch::getSecondsSinceLeft(int rank) const {
  int64_t at = leftAt[rank].load(std::memory_order_acquire);
  return at ? double(getNow() - at) * 1e-9 : -1;
}

std::string Watch::getWhyLeft(int rank) {
  std::lock_guard<std::mutex> lock(mutex);
  return whyLeft[rank];
}

void Watch::markLeft(int other, const std::string &why) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    whyLeft[other] = program::printable(why);
  }
  leftAt[other].store(getNow(), std::memory_order_release);
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

void Watch::loop() {
  int64_t last = getNow();
  bool saidBye = false;
  for (;;) {
    std::vector<pollfd> polled = {{wakeup, POLLIN, 0}};
    for (Peer &peer : peers)
      polled.push_back({peer.socket, POLLIN, 0}); // negative ones are skipped
    poll(polled.data(), polled.size(), kTickMilliseconds);
    int64_t now = getNow();
    // Whoever was stopped itself has not listened, and must not think that all others were silent.
    if (now - last > kSecond / 2)
      for (Peer &peer : peers)
        peer.lastHeard = now;
    last = now;
    for (size_t i = 0; i < peers.size(); ++i)
      if (polled[i + 1].revents)
        receive(peers[i]);
    // The rank has written to wake the thread: what it wants is read below.
    uint64_t woken;
    (void)!read(wakeup, &woken, sizeof(woken));
    std::unique_lock<std::mutex> lock(mutex);
    std::optional<Failure> asked = wanted;
    bool leave = leaving;
    std::string why = whyLeaving;
    lock.unlock();
    if (asked && !fault)
      noteFault(*asked);
    if (!fault)
      checkSilence(now);
    if (fault)
      return endWithFault();
    beat(now);
    if (leave && !saidBye) {
      saidBye = true;
      sendAll(Kind::Bye, rank, why);
    }
    if (leave && isOver())
      return;
  }
}

/// Whether all others have said goodbye. The hub has passed on what it has heard, so all will know.
bool Watch::isOver() const {
  for (int other = 0; other < size; ++other)
    if (other != rank && !hasLeft(other))
      return false;
  return true;
}

/// Says that this process lives, and what its rank is doing, so that the hub can tell the others when it stops.
void Watch::beat(int64_t now) {
  if (now - lastBeat < kBeatEvery)
    return;
  lastBeat = now;
  sendAll(Kind::Beat, rank, log.getLast());
}

/// Rank 0 watches all, and all watch rank 0.
void Watch::checkSilence(int64_t now) {
  for (Peer &peer : peers) {
    double silent = double(now - peer.lastHeard) * 1e-9;
    if (peer.socket < 0 || silent <= options.silence || fault)
      continue;
    Failure stopped;
    stopped.cause = Cause::Stopped;
    stopped.rank = rank;
    stopped.peer = peer.rank;
    stopped.operation = log.getLast();
    char seconds[32];
    std::snprintf(seconds, sizeof(seconds), "%.3g", silent);
    stopped.detail = "rank " + std::to_string(peer.rank) + " has given no sign of life for " + seconds + " s";
    noteFault(stopped);
  }
}

//===----------------------------------------------------------------------===//
// What comes in
//===----------------------------------------------------------------------===//

void Watch::receive(Peer &peer) {
  char buffer[4096];
  ssize_t size = 0;
  while (peer.received.size() < kMostReceived && (size = recv(peer.socket, buffer, sizeof(buffer), MSG_DONTWAIT)) > 0)
    peer.received.append(buffer, size_t(size));
  bool hasEnded = size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR);
  // What came before the end counts: a goodbye, above all.
  Frame frame;
  while (peer.socket >= 0 && takeFrame(peer.received, frame)) {
    peer.lastHeard = getNow();
    handle(peer, frame.kind, frame.about, frame.text);
  }
  // What is no frame never becomes one.
  if (hasEnded || peer.received.size() >= kMostReceived)
    lose(peer);
}

void Watch::handle(Peer &peer, Kind kind, int about, const std::string &text) {
  switch (kind) {
  case Kind::Beat:
    peer.lastOperation = sanitizeLines(text);
    return;
  case Kind::Fault: {
    Failure given;
    if (!decodeFailure(text, given))
      return;
    // The hub's word counts, and comes even if this rank has a failure of its own.
    if (!fault)
      noteFault(given);
    else if (!isHub())
      fault = given;
    return;
  }
  case Kind::Record:
    peer.hasRecord = true;
    peer.lastOperation = sanitizeLines(text);
    return;
  case Kind::Bye:
    if (about < 0 || about >= size)
      return;
    markLeft(about, text);
    if (isHub())
      sendAll(Kind::Bye, about, text);
    return;
  case Kind::Release:
    peer.hasRecord = true;
    return;
  case Kind::Welcome: {
    // A line for each rank; with fewer it is none of this run's.
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      cards.push_back(line);
    isWelcome = cards.size() == size_t(size);
    return;
  }
  case Kind::Hello:
  case Kind::Banner:
  case Kind::Proof:
  case Kind::Chosen:
    return;
  }
}

/// A connection has ended: without a goodbye, so has its process.
void Watch::lose(Peer &peer) {
  close(peer.socket);
  peer.socket = -1;
  if (fault || hasLeft(peer.rank))
    return;
  Failure died;
  died.cause = Cause::Died;
  died.rank = rank;
  died.peer = peer.rank;
  died.operation = log.getLast();
  died.detail = "the process of rank " + std::to_string(peer.rank) + " is gone";
  noteFault(died);
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

/// Knows of a fault: the hub says where its subject was last, and tells all; the others tell the hub.
void Watch::noteFault(Failure given) {
  for (Peer &peer : peers)
    if (isHub() && peer.rank == given.peer && !peer.lastOperation.empty() && given.cause != Cause::Mismatch)
      given.detail += "; the last that it came to is " + peer.lastOperation;
  fault = given;
  faultAt = getNow();
  sendAll(Kind::Fault, rank, encodeFailure(*fault));
}

/// Hub: gathers the logs, writes them, releases all. Others: hand in the log, take the hub's word for what the failure
/// is, and wait for release, so that no launcher kills the hub while it writes.
void Watch::endWithFault() {
  if (!isHub())
    sendAll(Kind::Record, rank, log.getText(rank, getNow()));
  int64_t deadline = faultAt + (isHub() ? kRecordTime : kReleaseTime);
  auto isDone = [](const Peer &peer) { return peer.socket < 0 || peer.hasRecord; };
  while (getNow() < deadline && !std::all_of(peers.begin(), peers.end(), isDone)) {
    std::vector<pollfd> polled;
    for (Peer &peer : peers)
      polled.push_back({peer.socket, POLLIN, 0});
    poll(polled.data(), polled.size(), kTickMilliseconds);
    for (size_t i = 0; i < peers.size(); ++i)
      if (polled[i].revents)
        receive(peers[i]);
  }
  bool isHubGone = !isHub() && peers.front().socket < 0;
  if (!options.recordFolder.empty() && (isHub() || isHubGone))
    record(isHubGone ? "flight-recorder-rank-" + std::to_string(rank) + ".txt" : "flight-recorder.txt");
  sendAll(Kind::Release, rank, "");
  std::lock_guard<std::mutex> lock(mutex);
  failure.raise(*fault);
  changed.notify_all();
}

/// Writes this rank's log, and what others have handed in.
void Watch::record(const std::string &name) {
  std::string text = fault->getMessage() + "\n" + log.getText(rank, getNow());
  for (const Peer &peer : peers)
    if (isHub())
      text += peer.hasRecord ? peer.lastOperation : "rank " + std::to_string(peer.rank) + " handed in nothing\n";
  if (Status written = writeRecord(options.recordFolder, text, name); !written.isOk())
    fault->detail += "; " + written.getFailure().detail;
}
