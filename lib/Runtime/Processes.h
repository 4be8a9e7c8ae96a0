//===- Processes.h - ranks that are processes -------------------*- C++ -*-===//
//
// What MPI and TCP have in common: an operation is one or two rounds, in each of which a member sends one message to each
// other one, and terms are combined here, in the order of the group, so that the bits are those of thread ranks.
//
//   small all_reduce   everybody's operand to all                    1 round
//   large all_reduce   share p of the operand to member p, combined; the share combined to all      2 rounds
//   the others         what member p needs to member p               1 round
//
// Long operands go in several messages (Messages.h), a few at a time, so the second round begins while the first one is under way:
//
//   to member p     0.0  0.1  0.2  0.3 ..                      round.message
//   from member p        0.0  0.1  0.2 ..   combined as they come
//   to member p               1.0  1.1 ..
//
// All that is under way moves whenever this rank starts, advances or waits for something. A message begins with what its sender is
// doing, so every one is checked. Waiting is polling, with an eye on the watch (Watch.h). A subclass carries messages, and knows
// nothing of what they hold.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_PROCESSES_H
#define CLEAVE_LIB_RUNTIME_PROCESSES_H

#include "Messages.h"
#include "Watch.h"
#include "cleave/Runtime/Communicator.h"
#include <deque>

namespace cleave::runtime {

/// Seconds without a sign of life after which a process has stopped, unless the options say otherwise.
constexpr double kProcessSilence = 5;

class ProcessCommunicator : public Communicator {
protected:
  /// Which message between two ranks.
  struct Key {
    GroupId group;
    uint64_t number;
    unsigned round;
    bool operator<(const Key &other) const {
      return std::tie(group, number, round) < std::tie(other.group, other.number, other.round);
    }
  };
  /// A message on its way to another rank. It stays where it is until it is sent.
  struct Sending {
    virtual ~Sending();
    int peer = 0;
    Key key = {};
    Message message;
    bool isSent = false;
  };
  /// The next message of a key from another rank. They come in the order in which they were sent.
  struct Receiving {
    virtual ~Receiving();
    int peer = 0;
    Key key = {};
    Message message;
    bool isThere = false;
  };

  ProcessCommunicator(int rank, int size, const Options &options)
      : Communicator(rank, size, options), watch(rank, size, options) {}

  void expectMessages(uint64_t bytes) override { largest = bytes; }
  Status advance() override;
  void leave(const std::string &why) override { watch.leave(why); }
  /// What is wrong with a message of so many bytes from `peer`; nothing where it may be one.
  std::optional<std::string> findTooLarge(int peer, uint64_t bytes) const;
  /// Memory of a message that was, for one that comes or goes: fresh memory costs more than what is done with it.
  Message takeSpare();
  void keepSpare(Message message);

  // What a kind of connection has to do; the rest is the same for all. None of it waits; `error` where something is impossible.
  /// Moves all connections on, where that is one thing to do for all messages.
  virtual void moveConnections() {}
  virtual std::unique_ptr<Sending> send(int peer, Key key, Message message, std::string &error) = 0;
  virtual std::unique_ptr<Receiving> expect(int peer, Key key);
  virtual void move(Sending &, std::string &) {}
  virtual void move(Receiving &receiving, std::string &error) = 0;
  /// Lets others have the core: nothing has moved for `nanoseconds`.
  virtual void rest(int64_t nanoseconds);

  void join(const Group &) override {}
  Status post(const Pending &pending) override;
  Status complete(const Pending &pending) override;
  Status raise(const Failure &failure) override {
    watch.raise(failure);
    return watch.getFailure().get();
  }
  Status getFirstFailure() const override { return watch.getFailure().get(); }
  FlightLog &getLog() override { return watch.getLog(); }

  mutable Watch watch;

private:
  /// Messages of one round with one other member.
  struct Line {
    uint64_t begun = 0; ///< that the connection has got
    std::deque<std::unique_ptr<Sending>> sending;
    std::unique_ptr<Receiving> receiving;
  };
  /// By member; this rank's own line is empty. `done`: so many messages of each member are unpacked.
  struct Round {
    std::vector<Line> lines;
    uint64_t done = 0;
  };
  /// An operation between its start and its wait.
  struct UnderWay {
    const Pending *pending;
    uint64_t messages;
    std::vector<Round> rounds;
    bool isDone = false;

    Letter getLetter(size_t round, uint64_t number) const {
      uint32_t own = pending->group->index;
      return {uint32_t(pending->group->members.size()), own, own, unsigned(round), number};
    }
  };

  static int findMissing(const UnderWay &operation);
  Status advanceAll();
  Status advanceOne(UnderWay &operation);
  Status sendSome(UnderWay &operation, size_t round);
  Status receiveSome(UnderWay &operation, size_t round, bool &hasMoved);
  Status checkMissing(const Pending &pending, int peer, int64_t began);

  /// In the order of their start, of all groups.
  std::deque<UnderWay> underWay;
  std::vector<Message> spares;
  int64_t advancedAt = 0;
  /// Bytes of the largest message that may come.
  uint64_t largest = options.largestMessage;
};

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_PROCESSES_H
