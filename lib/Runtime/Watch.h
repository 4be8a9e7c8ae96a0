//===- Watch.h - signs of life between processes ----------------*- C++ -*-===//
//
// Ranks that are processes cannot look at each other's memory. Each has a thread that keeps one TCP connection, in a star
// with rank 0 as the hub, and works whatever the rank itself is doing:
//
//   beats     every 100 ms, with what the rank came to last; who is silent for too long has stopped
//   the end   of a connection without a goodbye: the process is gone
//   a fault   goes to the hub, which makes the first one that of all
//   the logs  of all ranks then go to the hub, which writes one file, and only then lets everybody go
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_WATCH_H
#define CLEAVE_LIB_RUNTIME_WATCH_H

#include "Handshake.h"
#include "WatchFrame.h"
#include "cleave/Program/Thread.h"
#include "cleave/Runtime/Communicator.h"
#include <condition_variable>

namespace cleave::runtime {

class Watch {
public:
  /// `silence` of the options must be set.
  Watch(int rank, int size, const Options &options);
  ~Watch();

  /// Rank 0: opens a port with a secret of its own, and says where it is. The address is what others must be told, and
  /// nobody else.
  Status listen(in_addr at, std::string &address);
  /// Rank 0: the same at the first of `ports` that is free (0: any), for those who know `secret`.
  Status listen(in_addr at, const std::vector<int> &ports, const Secret &secret, std::string &address);
  /// Begins to watch: rank 0 waits for all others, the others connect to rank 0. All ranks get the cards of all.
  Status begin(const std::string &address, const std::string &card = "");
  Status begin(const FindAddress &hub, const std::string &card);
  /// By rank, when they have begun.
  const std::vector<std::string> &getCards() const { return cards; }
  /// What all ranks have in common, for connections of their own. When they have begun.
  const Secret &getSecret() const { return own.secret; }

  /// Says goodbye, and returns when all have said it, or there is a failure.
  void leave();
  /// The same because of an error, which all hear; it waits no longer than the deadline.
  void leave(const std::string &why);

  /// Makes `failure` that of all ranks, unless there was one; returns when there is one.
  void raise(const Failure &failure);
  FirstFailure &getFailure() { return failure; }
  FlightLog &getLog() { return log; }
  /// Seconds since a rank said goodbye; negative if it has not.
  double getSecondsSinceLeft(int rank) const;
  /// What it said then; empty: its work was done.
  std::string getWhyLeft(int rank);

private:
  using Kind = Frame::Kind;

  /// Another process: of the hub all others, of the others the hub.
  struct Peer {
    int rank = -1;
    int socket = -1;
    std::string received;
    int64_t lastHeard = 0;
    std::string lastOperation;
    bool hasRecord = false;
  };

  Status connectToHub(const FindAddress &hub, int64_t deadline);
  Status awaitWelcome(int64_t deadline);
  Status acceptAll(int64_t deadline);
  void hearRanks();
  void admit(Handshake &guest);
  void turnAway(Peer &guest, const std::string &why);
  std::string nameMissing() const;
  void loop();
  void receive(Peer &peer);
  void handle(Peer &peer, Kind kind, int about, const std::string &text);
  void lose(Peer &peer);
  void checkSilence(int64_t now);
  void beat(int64_t now);
  void send(Peer &peer, Kind kind, int about, const std::string &text);
  void sendAll(Kind kind, int about, const std::string &text);
  void noteFault(Failure fault);
  void endWithFault();
  void record(const std::string &name);
  void markLeft(int rank, const std::string &why);
  bool hasLeft(int rank) const { return leftAt[rank].load(std::memory_order_acquire) != 0; }
  bool isOver() const;
  bool isHub() const { return rank == 0; }

  const int rank, size;
  const Options options;
  FlightLog log;
  FirstFailure failure;
  int listener = -1, wakeup = -1;
  Identity own;
  std::vector<std::string> cards;
  bool isWelcome = false;
  /// What became of those who had no place, for the message of who waited in vain.
  std::string turnedAway;
  std::vector<Peer> peers;
  std::vector<std::atomic<int64_t>> leftAt;

  std::mutex mutex;
  std::condition_variable changed;
  /// What the rank asks of the thread. Behind `mutex`.
  std::optional<Failure> wanted;
  bool leaving = false;
  /// Behind `mutex`, too: why this rank leaves, why others have left, by rank, and whether the thread is done.
  std::string whyLeaving;
  std::vector<std::string> whyLeft;
  bool isFinished = false;

  /// The thread's own: the fault that all will have, once it is known, and since when.
  std::optional<Failure> fault;
  int64_t faultAt = 0, lastBeat = 0;
  program::Thread thread;
};

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_WATCH_H
