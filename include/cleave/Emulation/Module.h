//===- Module.h - what a module of emulated kernels exports -----*- C++ -*-===//
//
// Kernels of a device, compiled for this machine, are a shared library that exports one symbol, a `Module`. Whoever loads it
// puts the address of a table of functions into `hooks`: through them kernels read registers, meet at barriers, and tell of
// every load and store. These structs are made as constants by `emulate` (lib/EmulatedKernels/EmulateDevice.cpp), field by field.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_EMULATION_MODULE_H
#define CLEAVE_EMULATION_MODULE_H

#include <cstdint>

namespace cleave::emulation {

/// Goes up with every change of this file.
constexpr uint32_t moduleVersion = 1;
/// The symbol of a `Module`.
constexpr const char *moduleSymbol = "cleave_emulated_module";
/// The object of a place that must be looked up by address.
constexpr uint32_t unknownObject = ~0u;

enum class ObjectKind : uint32_t { Argument, Shared, DynamicShared, Variable, Local };

/// Memory that a kernel touches.
struct Object {
  const char *name; // what reports call it
  ObjectKind kind;
  uint32_t argument;   // number, of an argument
  uint64_t offset;     // of a shared variable, in the memory of its block
  const void *address; // of a variable of the module
  uint64_t bytes;      // 0: as many as there are at run time
  uint32_t granule;    // every access is of whole granules
  uint32_t isWritten;
};

enum AccessFlags : uint32_t { accessStores = 1, accessIsAtomic = 2 };

/// A load, a store, a barrier or a meeting of a warp in the code of a kernel.
struct Site {
  uint32_t flags; // AccessFlags
  uint32_t bytes; // 0: known when it runs
  uint32_t alignment;
  uint32_t object;    // number among those of the kernel, or unknownObject
  uint32_t number;    // of the place in its kernel
  const char *source; // where it comes from, or null
};

enum ParameterFlags : uint32_t {
  parameterIsPointer = 1,
  parameterIsWritten = 2,
  parameterIsAlone = 4, // overlaps no other that is written
  parameterIsEmpty = 8  // of no bytes: nothing may be touched
};

struct Parameter {
  uint32_t bytes;   // of the parameter itself
  uint32_t flags;   // ParameterFlags
  uint64_t pointee; // bytes of what it points to, 0: not known
};

struct Kernel {
  const char *name;
  void (*entry)(void **parameters); // addresses of the parameters, as a launch passes them
  const Parameter *parameters;
  const Object *objects;
  uint32_t parameterCount, objectCount;
  uint32_t sharedBytes; // of shared variables whose size is known
  uint32_t maxThreads;  // of a block, 0: not said
};

struct Variable {
  const char *name;
  void *address;
  uint64_t bytes;
};

/// What the lanes of a warp do together. Words in and words out are those of PTX's instruction, a pointer is two words.
enum class WarpKind : uint32_t {
  ShuffleXor, // value, b, c -> value, isValid; so for all four
  ShuffleUp,
  ShuffleDown,
  ShuffleIndex,
  Sync,    // -> ; orders memory
  VoteAll, // predicate -> result; so for all four
  VoteAny,
  VoteUniform,
  Ballot,
  ReduceAdd, // value -> result; so for all eight
  ReduceMin,
  ReduceMax,
  ReduceUMin,
  ReduceUMax,
  ReduceAnd,
  ReduceOr,
  ReduceXor,
  MatchAny,       // value -> mask
  MultiplyF16K16, // m16n8: a (4), b (2), c (4) -> d (4)
  MultiplyBf16K16,
  MultiplyTf32K8,
  MultiplyF16K8, // a (2), b (1), c (4) -> d (4)
  MultiplyBf16K8,
  LoadMatrix1, // address of a row -> a word; so for 2 and 4 matrices
  LoadMatrix2,
  LoadMatrix4,
  LoadMatrix1Turned,
  LoadMatrix2Turned,
  LoadMatrix4Turned,
};

struct Hooks {
  /// tid, ctaid, ntid, nctaid (x, y, z each), laneid, warpid, warpsize.
  uint32_t (*readRegister)(uint32_t which);
  void (*barrier)(const Site *site);
  /// Before a load or store. `base` is the object's address where it is local.
  void (*access)(const void *at, const void *base, const Site *site);
  void (*accessRange)(const void *at, const void *base, uint64_t bytes, const Site *site);
  /// The memory of the block.
  void *(*getShared)(uint64_t offset);
  void (*meetWarp)(WarpKind kind, uint32_t mask, const uint32_t *in, uint32_t *out, const Site *site);
  /// cp.async: `filled` of `bytes` come from `from`, the rest is zero.
  void (*copyAsync)(void *to, const void *from, uint32_t bytes, uint32_t filled, const Site *store, const Site *load);
  void (*commitCopies)();
  /// All but the last `groups` groups are complete; ~0: all copies.
  void (*waitForCopies)(uint32_t groups);
};

struct Module {
  uint32_t version;
  uint32_t kernelCount, variableCount;
  const Kernel *kernels;
  const Variable *variables;
  const Hooks **hooks; // to be filled in
};

} // namespace cleave::emulation

#endif // CLEAVE_EMULATION_MODULE_H
