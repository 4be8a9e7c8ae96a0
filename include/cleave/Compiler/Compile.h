//===- Compile.h - what becomes of a model ----------------------*- C++ -*-===//
//
//   cleave::Compilation compilation(options);
//   std::optional<cleave::Report> report = cleave::compileModel(compilation, "model.cleave");
//   if (!report)
//     return complainAbout(compilation.getDiagnostics());
//
// A compilation takes its model one way only: whoever wants a program and a prediction has two, of the same options.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COMPILER_COMPILE_H
#define CLEAVE_COMPILER_COMPILE_H

#include "cleave/Compiler/Compilation.h"

namespace cleave {

/// Writes the program of a model to `path`, whole or not at all; without a mesh that of one device. Loads the model where it is not loaded yet.
/// The report has all of the program. Nothing after an error, which is among the diagnostics.
std::optional<Report> compileModel(Compilation &compilation, llvm::StringRef path);

/// What the ranks of a model would send, store and take, with nothing compiled: its report as soon as there is a program per device, or, of a
/// pipeline, per rank. Times are there where a cluster is known. Otherwise as above.
std::optional<Report> predictModel(Compilation &compilation);

/// An error, with names near it, unless kernels can be made for `name`, such as `sm_90`.
llvm::Error checkArchitecture(llvm::StringRef name);

} // namespace cleave

#endif // CLEAVE_COMPILER_COMPILE_H
