//===- OlderNames.h - passes by the names that they had ---------*- C++ -*-===//
//
// What users have in scripts stays accepted where a pass is called otherwise now.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_PIPELINES_OLDERNAMES_H
#define CLEAVE_LIB_PIPELINES_OLDERNAMES_H

namespace cleave {

/// Registers each older name as a pipeline of the one pass that it means, with that pass's options.
void registerOlderNames();

} // namespace cleave

#endif // CLEAVE_LIB_PIPELINES_OLDERNAMES_H
