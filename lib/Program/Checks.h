//===- Checks.h - what the checks of a program share ------------*- C++ -*-===//
//
// Each check takes what those before it have established: tables first, then commands one by one, then their order.
// docs/program-file.md has the constraints, by number.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_PROGRAM_CHECKS_H
#define CLEAVE_LIB_PROGRAM_CHECKS_H

#include "cleave/Program/Error.h"
#include "cleave/Program/File.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"

namespace cleave::program {

/// Bounds of what is accepted (P5).
inline constexpr uint32_t kMostRanks = 1 << 20, kMostStreams = 16, kMostDims = 128, kMostNestedLoops = 16;
inline constexpr uint64_t kMostWork = uint64_t(1) << 28, kMostBytes = uint64_t(1) << 48;

/// What a number is on the ranks of a role.
struct Spread {
  int64_t least = 0, most = 0;
  uint64_t bits = 0; ///< that are set in any of them
};

/// Where a command stands.
struct Spot {
  size_t variant, role, command;
};

class LifetimeCheck;
class MeetingCheck;

class Checker {
public:
  explicit Checker(const Program &program) : program(program) {}
  Status check();

private:
  friend class LifetimeCheck;
  friend class MeetingCheck;

  const Program &program;
  /// Per role and column what the ranks of the role have in it.
  std::vector<std::vector<Spread>> spreads;
  /// Steps taken by checks that walk lists more than once.
  uint64_t work = 0;

  Status spend(uint64_t steps);
  /// A command's place, as the beginning of a message; of the first rank with it, where none is said.
  std::string locate(const Spot &spot, std::optional<uint32_t> rank = std::nullopt) const;
  const Command &getCommand(const Spot &spot) const {
    return program.variants[spot.variant].lists[spot.role].commands[spot.command];
  }
  const Type &getType(const View &view) const { return program.types[view.type]; }

  // Check.cpp
  Status checkSize();
  Status checkTypes();
  Status checkMesh();
  Status checkRoles();
  /// `number` on the ranks of a role; nothing if its column is missing or a sum overflows.
  std::optional<Spread> getSpread(size_t role, const Number &number) const;
  Status checkView(size_t role, const View &view) const;
  bool isAligned(size_t role, const View &view, uint64_t alignment) const;

  // CheckTables.cpp
  Status checkCode();
  Status checkKernel(const Kernel &kernel) const;
  Status checkGroups();
  Status checkPieces();
  Status checkBoxes(const Pieces &pieces, size_t index);

  // CheckWeights.cpp
  Status checkWeights();
  Status checkBuffers();
  Status checkLoads();
  Status checkLoad(size_t role, const Load &load);
  Status checkPresent(size_t role, const Load &load, const Type &whole);

  // CheckCommands.cpp
  Status checkCommands();
  Status checkList(size_t variant, size_t role);
  Status checkCommand(const Spot &spot);
  Status checkAction(const Spot &spot, const Launch &launch) const;
  Status checkAction(const Spot &spot, const Matmul &matmul) const;
  Status checkAction(const Spot &spot, const Convolution &conv) const;
  Status checkAction(const Spot &spot, const Attention &attention) const;
  Status checkAction(const Spot &spot, const Copy &copy) const;
  Status checkAction(const Spot &spot, const Collective &collective);
  Status checkAction(const Spot &spot, const Exchange &exchange);
  Status checkAction(const Spot &spot, const Record &record) const;
  Status checkAction(const Spot &spot, const Wait &wait) const;
  Status checkAction(const Spot &spot, const Loop &loop) const;
  Status checkAction(const Spot &spot, const EndLoop &loop) const;
  Status checkCondition(const std::optional<View> &condition) const;
  Status checkLoops(size_t variant, size_t role) const;
  Status checkSignature(size_t role, int32_t kernel, const std::vector<Operand> &operands,
                        bool isFallback = false) const;
  Status checkFallback(const Spot &spot, int32_t kernel) const;
  Status checkOverlaps(const Spot &spot);

  // CheckCollectives.cpp
  Status checkMembers(const Spot &spot, const Collective &collective);
  Status checkShapes(const Collective &collective) const;
  Status checkInPlace(const Spot &spot, const Collective &collective);

  // CheckTensors.cpp
  Status checkTensors();
  Status checkTensor(const Tensor &tensor, bool isOutput);
  Status checkPresent(const Place &place, const Type &whole);
  Status checkCovers(const Tensor &tensor);
  Status checkOwnBuffers(const Variant &variant) const;
  bool isEnd(const Place &input, const Place &output, size_t dim) const;
  Status checkStates(const Variant &variant) const;
  Status checkVariants() const;

  // CheckLifetimes.cpp, CheckMeetings.cpp
  Status checkLifetimes();
  Status checkMeetings();
};

inline bool isPowerOfTwo(uint64_t number) { return number && !(number & (number - 1)); }

/// The error of a check with its place in front.
inline Status addPlace(const std::string &place, Status error) {
  if (error)
    error->message = place + error->message;
  return error;
}

} // namespace cleave::program

#endif // CLEAVE_LIB_PROGRAM_CHECKS_H
