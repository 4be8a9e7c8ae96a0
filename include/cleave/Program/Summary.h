//===- Summary.h - what is in a program, for people -------------*- C++ -*-===//
//
// What `cleave inspect` prints of a program file: its commands in words, memory over time, and what ranks send.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PROGRAM_SUMMARY_H
#define CLEAVE_PROGRAM_SUMMARY_H

#include "cleave/Program/Program.h"
#include <map>

namespace cleave::program {

struct CommandSummary {
  uint32_t stream;
  std::string kind; ///< `launch`, `all_reduce`, ...
  std::string text; ///< kernel and operands: `gelu(0+0 f32[4, 8]) -> 2+0 f32[4, 8]`; a view is buffer+offset type
  std::string node;
  uint64_t sentBytes;   ///< by the rank that sends most
  uint64_t liveBytes;   ///< of activations and communication, while it runs
  uint64_t tensorBytes; ///< of its operands and results: what a kernel moves that touches each element once
};

struct ListSummary {
  std::string role;
  std::vector<uint32_t> ranks;
  uint64_t arenaBytes;  ///< of activations and communication, from the first to behind the last byte that it names
  uint64_t liveBytes;   ///< the most that are live at once: no plan of memory does with less
  uint64_t weightBytes; ///< of a rank
  std::vector<CommandSummary> commands;
};

/// By kind of command how many and how many bytes.
struct Sent {
  uint64_t count = 0, bytes = 0;
  bool operator==(const Sent &other) const { return count == other.count && bytes == other.bytes; }
};

/// What ranks send to others in a call, those that send alike together.
struct SentSummary {
  std::vector<uint32_t> ranks;
  std::map<std::string, Sent> kinds;
};

struct VariantSummary {
  std::vector<ListSummary> lists;
  std::vector<SentSummary> sent;
};

/// By variant. Precondition: `checkProgram` has passed it.
std::vector<VariantSummary> summarize(const Program &program);

/// Ascending ranks as ranges: `0-3, 6`.
std::string formatRanks(const std::vector<uint32_t> &ranks);

} // namespace cleave::program

#endif // CLEAVE_PROGRAM_SUMMARY_H
