//===- Bind.h - a list of commands, made ready to run -----------*- C++ -*-===//
//
// Everything that does not change from call to call is worked out once: addresses, kernels, how copies go, and when what
// has been started is waited for. On the host a meeting on a stream other than 0 is started where it stands, and waited
// for where an event that stands behind it is; all else is done where it stands:
//
//   list     launch a | record 0 | [1] wait 0 | [1] all_reduce | [1] record 1 | launch b | wait 1 | launch c
//   steps    launch a |                         start          |                launch b | finish | launch c
//
// A device with a queue gets all of it as it stands, events too.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_BIND_H
#define CLEAVE_LIB_RUNTIME_BIND_H

#include "cleave/Runtime/Communicator.h"
#include "cleave/Runtime/Device.h"

namespace cleave::runtime {

/// A copy that stands in a list, or around a meeting.
struct BoundCopy {
  BoxCopy box;
  const char *source = nullptr;
  char *target = nullptr;
};

/// A collective or an exchange: as many operations as it has tensors.
struct Meeting {
  std::vector<Operation> operations;
  std::vector<Ticket> tickets;
  /// Parts that no tiling describes are packed before, and unpacked behind.
  std::vector<BoundCopy> packs, unpacks;
  /// Of exchanges.
  std::vector<Piece> pieces;
};

/// Floats that are looked at for NaN.
struct Look {
  ElementType type;
  BoundCopy view;
};

struct Step {
  enum class Kind : uint8_t { Launch, Call, Copy, Start, Finish, Look, Record, Wait, Loop, EndLoop };
  Kind kind = Kind::Launch;
  uint32_t stream = 0;
  uint32_t command = 0;
  /// Of calls of libraries, copies, meetings, looks, events and loops: which one.
  uint32_t index = 0;
  BoundLaunch launch;
};

/// Steps that run again and again, and where the conditions lie; null where there are none.
struct BoundLoop {
  int64_t count = -1;
  const char *first = nullptr, *again = nullptr;
  size_t begin = 0, end = 0; ///< steps
};

/// One variant's list on one rank.
struct BoundList {
  std::vector<Step> steps;
  std::vector<BoundCopy> copies;
  std::vector<Meeting> meetings;
  std::vector<Look> looks;
  std::vector<BoundLoop> loops;
  /// What launches point to: addresses, and integers.
  std::vector<std::vector<void *>> arguments;
  std::vector<std::vector<int64_t>> scalars;
  /// Where kernels report, one behind the other in the device's memory, and by which command; null where none does.
  char *reports = nullptr;
  std::vector<uint32_t> reporters;
};

/// An index that is out of range, and one more than the places that it is for; zeros where there is none.
struct Report {
  int64_t index, places;
};

/// Where a rank's tensors lie.
class Addresses {
public:
  virtual ~Addresses() = default;
  virtual char *get(const program::View &view) const = 0;
  /// Memory for packing, of this rank.
  virtual program::Result<char *> getScratch(uint64_t bytes) = 0;
};

/// What a rank needs to bind its lists.
struct BindContext {
  const program::Program &program;
  uint32_t rank, role;
  Device &device;
  Addresses &addresses;
  /// By kernel of the program.
  const std::vector<KernelEntry> &kernels;
  /// The communicator's groups, by groups and by pieces of the program.
  const std::vector<GroupId> &groups, &pieceGroups;
  bool findsNan;
  /// The device's; null if it has none.
  Queue *queue = nullptr;
};

program::Status bind(const BindContext &context, uint32_t variant, BoundList &list);

/// The operations of a meeting. `count` is the command's place among those of its role with the same pieces (exchanges).
program::Status bindCollective(const BindContext &context, const program::Collective &collective, Meeting &meeting);
program::Status bindExchange(const BindContext &context, uint32_t variant, const program::Exchange &exchange,
                             size_t count, Meeting &meeting);

/// A box from member to member, as pieces of two levels: strides and offsets in elements.
void addPieces(const std::vector<int64_t> &shape, const std::vector<int64_t> &sourceStrides, uint64_t sourceOffset,
               const std::vector<int64_t> &targetStrides, uint64_t targetOffset, uint32_t source, uint32_t target,
               std::vector<Piece> &pieces);

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_BIND_H
