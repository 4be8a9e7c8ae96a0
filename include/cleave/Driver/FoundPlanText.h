//===- FoundPlanText.h - a found plan in words ------------------*- C++ -*-===//
#ifndef CLEAVE_DRIVER_FOUNDPLANTEXT_H
#define CLEAVE_DRIVER_FOUNDPLANTEXT_H

#include "cleave/Compiler/CertifyPlan.h"
#include "cleave/Compiler/FindPlan.h"
#include "cleave/Driver/Options.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace cleave::driver {

/// A line for each cell, the best first.
void printCells(llvm::raw_ostream &os, const FoundPlan &found);
/// A line for each plan on the front of time and memory, with a bar as long as it takes memory.
void drawFront(llvm::raw_ostream &os, const FoundPlan &found);
/// The same as an SVG of points, with axes from 0.
void drawFrontSvg(llvm::raw_ostream &os, const FoundPlan &found);
/// What was found, by keys that docs/report.md fixes; times are seconds. `proof` may be null.
llvm::json::Object toJson(const FoundPlan &found, llvm::StringRef model, const PlanRequest &request,
                          const PlanProof *proof);
/// The file of --report: the above. `proof` may be null; `structure`: what else was asked of the model.
llvm::Error writeReport(const Options &options, const FoundPlan &found, const PlanProof *proof,
                        llvm::json::Object structure);
/// The mesh and what a call takes; what a rank stores and sends; what more memory would save, where it binds.
std::vector<std::string> summarize(const FoundPlan &found);

} // namespace cleave::driver

#endif // CLEAVE_DRIVER_FOUNDPLANTEXT_H
