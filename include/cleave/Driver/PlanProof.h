//===- PlanProof.h - --certificate and --verify -----------------*- C++ -*-===//
#ifndef CLEAVE_DRIVER_PLANPROOF_H
#define CLEAVE_DRIVER_PLANPROOF_H

#include "cleave/Compiler/CertifyPlan.h"
#include "cleave/Driver/Session.h"
#include "llvm/Support/JSON.h"

namespace cleave::driver {

/// Proves how far the plan is from the best, and writes that to the file of `--certificate`. Nothing after an error.
std::optional<PlanProof> writeCertificate(Session &session, const FoundPlan &found);

/// What is proved, each line behind `front`; of stages there is one more.
void printProof(llvm::raw_ostream &os, llvm::StringRef front, const PlanProof &proof);

/// `--verify`: one line where the certificate holds; where it does not, errors with what does not.
ExitCode verifyCertificate(Session &session);

/// Adds `bound`, `gap` and `proved` to the best plan of a report; null: nothing is proved.
void addProof(llvm::json::Object &best, const PlanProof *proof);

} // namespace cleave::driver

#endif // CLEAVE_DRIVER_PLANPROOF_H
