//===- Failure.h - what went wrong among ranks ------------------*- C++ -*-===//
//
// A failure is a value: it says which rank noticed it, in which operation, whom it is about and why. All ranks end with
// the failure of the first one that had one.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_FAILURE_H
#define CLEAVE_RUNTIME_FAILURE_H

#include <atomic>
#include <cassert>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace cleave::runtime {

enum class Cause : uint8_t {
  /// An operation was not complete when its deadline was over.
  Timeout,
  /// A rank gave no sign of life for too long.
  Stopped,
  /// A rank has left while others wait for it.
  Left,
  /// The process of a rank is gone.
  Died,
  /// Two ranks of a group called different operations.
  Mismatch,
  /// An operation that cannot be carried out as it was asked for.
  Invalid,
  /// Something outside of communication: a kernel, a user's request.
  Aborted,
  /// The system refused something.
  System,
};
const char *getName(Cause cause);
/// `1.5 s`.
std::string formatSeconds(double seconds);

struct Failure {
  Cause cause = Cause::Aborted;
  /// The rank that noticed it.
  int rank = 0;
  /// The rank that it is about, or -1.
  int peer = -1;
  /// What `rank` was doing: operation, its number, the group with its members. Empty outside of operations.
  std::string operation;
  /// Why, in one sentence without a full stop.
  std::string detail;

  /// `rank 0: all_reduce sum f32[256], number 12 in group 1 {0, 2}: rank 2 did not arrive within 2 s (timeout)`
  std::string getMessage() const;
};

/// Success, or a failure. Success costs nothing.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Failure failure) : failure(std::make_shared<const Failure>(std::move(failure))) {}
  Status(std::shared_ptr<const Failure> failure) : failure(std::move(failure)) {}

  bool isOk() const { return !failure; }
  /// Precondition: not ok.
  const Failure &getFailure() const {
    assert(failure && "there is no failure");
    return *failure;
  }
  std::string getMessage() const { return failure ? failure->getMessage() : "ok"; }

private:
  std::shared_ptr<const Failure> failure;
};

/// Where ranks that share it leave the first failure. Any thread may use it.
class FirstFailure {
public:
  /// Keeps `failure` if it is the first, after `ifFirst` has had a look at it. Returns whether it was.
  bool raise(Failure failure, const std::function<void(Failure &)> &ifFirst = {});
  bool isRaised() const { return raised.load(std::memory_order_acquire); }
  /// The first failure; success where there is none.
  Status get() const;

private:
  mutable std::mutex mutex;
  std::shared_ptr<const Failure> first;
  std::atomic<bool> raised{false};
};

} // namespace cleave::runtime

#endif // CLEAVE_RUNTIME_FAILURE_H
