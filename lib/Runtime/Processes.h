//===- Processes.h - ranks that are processes -------------------*- C++ -*-===//
//
// What MPI and TCP have in common: an operation is one or two rounds, in each of which a member sends one message to each
// other one, and terms are combined here, in the order of the group, so that the bits are those of thread ranks.
//
//   small all_reduce   everybody's operand to all                    1 round
//   large all_reduce   share p of the operand to member p, combined; the share combined to all      2 rounds
//   the others         what member p needs to member p               1 round
//
// A message begins with what its sender is doing, so every operation is checked. Waiting is polling, with an eye on the watch
// (Watch.h). A subclass carries messages, and knows nothing of what they hold.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_PROCESSES_H
#define CLEAVE_LIB_RUNTIME_PROCESSES_H

#include "Messages.h"
#include "Watch.h"
#include "cleave/Runtime/Communicator.h"
#include <map>

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
  /// A message to and one from another rank. They stay where they are until both are through.
  struct Transfer {
    virtual ~Transfer();
    int peer = 0;
    Key key = {};
    Message out, in;
    bool isSent = false, isReceived = false;
  };

  ProcessCommunicator(int rank, int size, const Options &options)
      : Communicator(rank, size, options), watch(rank, size, options) {}

  void expectMessages(uint64_t bytes) override { largest = bytes; }
  /// What is wrong with a message of so many bytes from `peer`; nothing where it may be one.
  std::optional<std::string> findTooLarge(int peer, uint64_t bytes) const;

  // What a kind of connection has to do; the rest is the same for all.
  /// Begins to send `out`, and to receive. Does not wait.
  virtual std::unique_ptr<Transfer> begin(int peer, Key key, Message out, std::string &error) = 0;
  /// Moves a transfer on; `error` where that is impossible.
  virtual void advance(Transfer &transfer, std::string &error) = 0;
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
  /// By member; this rank's own has what it sends to itself.
  using Round = std::vector<std::unique_ptr<Transfer>>;

  Status send(const Pending &pending, unsigned number, std::vector<Message> messages);
  Status receive(const Pending &pending, unsigned number, std::vector<Message> &messages);
  Status advanceAll(const Pending &pending, Round &round, int &missing);
  Status checkMissing(const Pending &pending, int peer, int64_t began);
  Status checkMessage(const Pending &pending, uint32_t member, const Message &message);

  /// Under way.
  std::map<Key, Round> rounds;
  /// Bytes of the largest message that may come.
  uint64_t largest = options.largestMessage;
};

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_PROCESSES_H
