//===- ThreadGroup.h - what thread ranks of a group share -------*- C++ -*-===//
//
// Each member of a group posts what it was called with, and where its operand lies. When all have, the *posted* gate is
// open, and each takes what it needs from the posts of the others, in one of two forms:
//
//   small   the operand was copied into a slot of its own when it was posted, and nobody looks at it again: the posted gate
//           is the only barrier, and slots and posts of the next operations are others
//   large   each reads the operands of others where they lie; when all have arrived at the *done* gate, operands are free: who
//           sends nothing in an exchange need not wait there.
//           An all_reduce is cut into one share per rank, and who combines a share writes it to everybody (one pass, and
//           the bytes are still in the cache), instead of a second round of gathering.
//
// A slot is used again `kDepth` operations later. That is safe: whoever starts number k + kDepth has waited for number
// k + kDepth - kMaxPending, so all have posted that, so all have waited for number k + kDepth - 2 * kMaxPending = k.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_THREADGROUP_H
#define CLEAVE_LIB_RUNTIME_THREADGROUP_H

#include "Gate.h"
#include "cleave/Runtime/Communicator.h"
#include <memory>

namespace cleave::runtime {

static_assert(Gate::kDepth == 2 * kMaxPending, "see above");

class ThreadGroup {
public:
  explicit ThreadGroup(const std::vector<int> &ranks);

  /// What member `index` says about operation `number`; copies a small operand. Opens no gate.
  void post(uint32_t index, uint64_t number, uint64_t digest, const Operation &operation);
  /// A member that does something else than `index`, and what: nothing if all agree. Once the posted gate is open.
  std::optional<std::pair<uint32_t, std::string>> findMismatch(uint32_t index, uint64_t number);
  /// What `index` has to do of the operation. Once the posted gate is open.
  void carryOut(uint32_t index, uint64_t number);
  /// Whether others are done with a member's operands when they have posted.
  bool isSmall(const Operation &operation) const;
  /// Whether others read the operand of `index` where it lies: not if it is small, nor if the member only receives. Who only
  /// receives goes on once it has what it wanted, while the sender may be busy with something else.
  bool isRead(uint32_t index, const Operation &operation) const;

  /// Ranks by index.
  const std::vector<int> ranks;

  /// A gate, and the last number that each member has arrived for: to say who is missing.
  struct Stage {
    explicit Stage(uint32_t members) : gate(members), arrived(members) {}
    void arrive(uint32_t index, uint64_t number);
    bool hasArrived(uint32_t index, uint64_t number) const;

    struct alignas(64) Number {
      std::atomic<uint64_t> value{0};
    };
    Gate gate;
    std::vector<Number> arrived;
  };
  Stage posted, done;

private:
  /// Operands up to this many bytes are posted by copy.
  static constexpr uint64_t kSmall = 8192;

  /// Written by the member before it arrives, read by others behind the gate.
  struct alignas(128) Post {
    uint64_t digest = 0;
    const char *input = nullptr;
    char *output = nullptr;
    Operation operation;
    /// Of an exchange, to each member. Its list of pieces is the member's, who may be done with it before others compare.
    std::vector<Traffic> sent;
  };
  struct alignas(128) SlotLine {
    char bytes[128];
  };
  struct Slot {
    std::unique_ptr<SlotLine[]> lines;
    uint64_t bytes = 0;
  };
  struct Member {
    Post posts[Gate::kDepth];
    /// Copies of small operands, got when they are first needed, and longer ones where one is too short.
    Slot slots[Gate::kDepth];
    /// Where the sources of a reduction begin. The member's own.
    std::vector<const char *> sources;
  };
  /// One operation, seen by one member.
  struct View {
    const Operation &operation;
    uint32_t index;
    uint64_t number;
    /// Bytes of an element.
    uint64_t size;

    char *output(uint64_t element) const { return static_cast<char *>(operation.output) + element * size; }
  };

  Post &getPost(uint32_t member, uint64_t number) { return members[member].posts[number % Gate::kDepth]; }
  const char *getSource(const View &view, uint32_t member, uint64_t element);
  void reduceRow(const View &view, uint64_t inSources, uint64_t inOutput, uint64_t count);
  void reduceShare(const View &view);
  void reduceOwnPart(const View &view);
  void takeParts(const View &view);
  void takePieces(const View &view);

  std::vector<Member> members;
};

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_THREADGROUP_H
