//===- Operands.h - what a command reads and writes -------------*- C++ -*-===//
#ifndef CLEAVE_PROGRAM_OPERANDS_H
#define CLEAVE_PROGRAM_OPERANDS_H

#include "cleave/Program/Program.h"

namespace cleave::program {

/// One tensor of a command.
struct Operand {
  View view;
  Access access = Access::Read;
  int32_t alias = -1; ///< the operand before it that it may lie in the bytes of
};

/// All tensors of a command: those of a kernel, and of a contraction, in the order of the (fallback) kernel's parameters;
/// of a collective all operands, then all results. Precondition: a kernel has as many parameters as operands (P18).
std::vector<Operand> getOperands(const Program &program, const Action &action);

/// Bytes from the first to behind the last element of a type. Precondition: P6.
uint64_t getSpanBytes(const Type &type);

/// Bytes that the elements of a type take. Precondition: P6.
uint64_t getBytes(const Type &type);

/// Whether elements lie one behind the other, in row-major order.
bool isDense(const Type &type);

/// Elements between neighbors of each dim; those of row-major order where the type says none.
std::vector<int64_t> getStrides(const Type &type);

/// Whether a copy may move a tensor towards the beginning of its buffer, over itself: elements lie alike on both sides, each
/// row behind the one before it, so that from the first to the last none is overwritten before it is read.
bool movesDown(const Program &program, const Copy &copy);

/// Equal element types and shapes, wherever elements lie.
bool isAlike(const Type &a, const Type &b);

/// The ranks that meet in an exchange of `pieces`, in order: those that pieces connect, the first ones' first.
std::vector<std::vector<uint32_t>> getMeetings(const Pieces &pieces);

/// The role of each rank.
std::vector<uint32_t> getRoles(const Program &program);

/// The shape of a slice of `shape` in a layout, as Layout says; nothing if the layout does not suit it.
std::optional<std::vector<int64_t>> getLaidOutShape(const std::vector<int64_t> &shape, const Layout &layout);

/// What there is on `rank` of a box of `shape`, from its start, by numbers of a load or place (none: all of it), held between 0 and the
/// shape: a part of a load may begin behind the end of what there is.
std::vector<int64_t> getPresent(const Program &program, const std::vector<Number> &present,
                                const std::vector<int64_t> &shape, uint32_t rank);

/// The kernel that a command launches, or may launch where the device has no library for it; -1: none.
int64_t findKernel(const Action &action);

} // namespace cleave::program

#endif // CLEAVE_PROGRAM_OPERANDS_H
