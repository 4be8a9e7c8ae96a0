//===- Profile.h - measured times of a model's nodes ------------*- C++ -*-===//
//
//   {"/encoder/layer.0/MatMul": 12500, "/encoder/layer.0/Softmax": 3100.5}      node: nanoseconds of one microbatch
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SCHEDULE_PROFILE_H
#define CLEAVE_SCHEDULE_PROFILE_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace cleave::schedule {

/// A place in a file, from 1.
struct ProfilePlace {
  unsigned line = 1, column = 1;
};

struct ProfileEntry {
  std::string node;
  /// Nanoseconds of the node's F on one microbatch; finite, not negative.
  double ns = 0;
  ProfilePlace place;
};

struct ProfileProblem {
  ProfilePlace place;
  std::string message;
};

/// Reads one JSON object of numbers, each name once. Returns the first thing that is wrong, or nothing.
std::optional<ProfileProblem> readProfile(llvm::StringRef text, std::vector<ProfileEntry> &entries);

} // namespace cleave::schedule

#endif // CLEAVE_SCHEDULE_PROFILE_H
