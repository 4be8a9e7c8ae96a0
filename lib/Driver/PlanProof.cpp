//===- PlanProof.cpp - --certificate and --verify -------------------------===//
//
// A certificate says for which sizes of dims it is: whoever checks one need not say them again.
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/PlanProof.h"

#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"

using namespace cleave;
using namespace cleave::driver;

/// Before the plan is written: who asks for a proof wants no plan without one.
std::optional<PlanProof> cleave::driver::writeCertificate(Session &session, const FoundPlan &found) {
  const Options &options = session.getOptions();
  std::optional<PlanProof> proof = certifyPlan(session, found, options.plan);
  if (!proof)
    return std::nullopt;
  if (llvm::Error error = writeTextAtomically(options.certificate, proof->certificate))
    return session.fail(std::move(error)), std::nullopt;
  return proof;
}

void cleave::driver::printProof(llvm::raw_ostream &os, llvm::StringRef front, const PlanProof &proof) {
  os << front << proof.format() << '\n';
  if (proof.stages)
    os << front << proof.stages->format() << '\n';
}

/// Sizes of dims are the proof's, which is read before the model for that.
ExitCode cleave::driver::verifyCertificate(Session &session) {
  Options options = session.getOptions();
  llvm::Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(options.verify);
  if (!file)
    return session.fail(file.takeError());
  llvm::Expected<std::map<std::string, int64_t>> dims = readCertifiedDims((*file)->getBytes());
  if (!dims)
    return session.fail(addContext(options.verify + ": ", dims.takeError()));
  for (const auto &[name, size] : *dims)
    options.compile.dims.try_emplace(name, size);
  Session checking(options);
  if (!checking.load())
    return checking.getExitCode();
  std::optional<PlanProof> proof = verifyPlan(checking, (*file)->getBytes(), options.plan);
  if (!proof)
    return checking.getExitCode();
  for (const std::string &mistake : proof->mistakes)
    checking.fail(makeError("{0}: {1}", options.verify, mistake));
  if (!proof->mistakes.empty())
    return checking.getExitCode();
  if (!options.quiet)
    printProof(llvm::outs(), options.verify + " holds: ", *proof);
  return kDone;
}

/// `proved` is `none` where nobody asked.
void cleave::driver::addProof(llvm::json::Object &best, const PlanProof *proof) {
  best["proved"] = proof ? "gap" : "none";
  if (!proof)
    return;
  best["solver_seconds"] = proof->ns * 1e-9;
  best["bound"] = proof->boundNs * 1e-9;
  best["gap"] = proof->gap;
  best["space"] = proof->space;
  if (proof->oneStageNs > 0) {
    best["bound_one_stage"] = proof->oneStageNs * 1e-9;
    best["gap_one_stage"] = proof->oneStageGap;
  }
  if (!proof->stages)
    return;
  const StagesProof &stages = *proof->stages;
  best["proved_stages"] = llvm::json::Object{{"solver_seconds", stages.ns * 1e-9},
                                             {"bound", stages.boundNs * 1e-9},
                                             {"gap", stages.gap},
                                             {"modeled_seconds", stages.time.ns * 1e-9},
                                             {"order_bound", stages.time.orderBoundNs * 1e-9},
                                             {"slowest_seconds", stages.time.slowestNs * 1e-9},
                                             {"split_bound", stages.time.splitBoundNs * 1e-9}};
}
