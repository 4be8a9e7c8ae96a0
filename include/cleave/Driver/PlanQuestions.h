//===- PlanQuestions.h - what else `cleave plan` answers --------*- C++ -*-===//
#ifndef CLEAVE_DRIVER_PLANQUESTIONS_H
#define CLEAVE_DRIVER_PLANQUESTIONS_H

#include "cleave/Compiler/FindPlan.h"
#include "cleave/Compiler/LikePlan.h"
#include "cleave/Driver/Session.h"
#include "llvm/Support/JSON.h"

namespace cleave::driver {

/// `megatron over model=4: rules split 14 tensors`.
std::string summarize(const LikePlan &like);

/// `cleave plan MODEL --like STYLE`, of a loaded model.
ExitCode likePlan(Session &session, const LikePlan &like);

/// `cleave plan MODEL --compare A.yaml B.yaml`.
ExitCode comparePlans(Session &session);

/// Prints what --roles and --support ask for; `plan` says how weights are split, null: nothing does. Where `report` is not null, adds
/// `roles` and `support` to it. False after an error. Precondition: the model is loaded.
bool answerStructure(Session &session, const spmd::Plan *plan, llvm::json::Object *report);

/// The text of a plan file with what the tensors of each rule are behind it: `  # up, 12 layers`. As it is where the model has no structure to
/// tell. Precondition: the model is loaded.
std::string noteRoles(Session &session, const spmd::Plan &plan, llvm::StringRef text);

/// `cleave plan MODEL --roles --support`, of no plan.
ExitCode answerWithout(Session &session);

/// True if every pin says something of the model, and none excludes another; else errors, with both places. Precondition: there are pins.
bool checkPins(Session &session);
/// What pins cost: with them and without, both figures. Nothing where none is found without them either.
std::optional<std::string> describePins(Session &session, const FoundPlan &found);
/// After no plan was found: whether one fits without pins; the least of both.
void explainPins(Session &session);

} // namespace cleave::driver

#endif // CLEAVE_DRIVER_PLANQUESTIONS_H
