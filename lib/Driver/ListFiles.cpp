//===- ListFiles.cpp - the files that a command line names ----------------===//
//
// One line for each option that names a file. What a model or a plan names is known when these are read (Session::load).
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/Options.h"
#include "cleave/Export/Onnx/Adapters.h"
#include "cleave/Export/Onnx/Trained.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave;
using namespace cleave::driver;

std::string cleave::driver::getPlanName(size_t number) { return llvm::formatv("plan-{0}.yaml", number); }

bool cleave::driver::isPlanName(std::string_view name) {
  llvm::StringRef number(name.data(), name.size());
  return number.consume_front("plan-") && number.consume_back(".yaml") && !number.empty() &&
         llvm::all_of(number, llvm::isDigit);
}

runtime::CommandFiles cleave::driver::listFiles(const Options &options) {
  runtime::CommandFiles files;
  const CompileOptions &compile = options.compile;
  const ScheduleCommand &schedule = options.schedule;
  files.addInput("the model", compile.model);
  for (const char *name : {"training_model.onnx", "optimizer_model.onnx", "checkpoint"})
    if (!compile.artifacts.empty())
      files.addInput("--artifacts", compile.artifacts + "/" + name);
  files.addInput("--plan", compile.sharding.plan);
  files.addInput("--cluster", compile.cluster);
  files.addInput("--inputs", compile.inputs);
  files.addInput("--against", options.against);
  files.addInput("--costs", schedule.costs);
  files.addInput("--profile", schedule.profile);
  files.addInput("--verify", options.verify);
  files.addInput("--data", options.train.data);
  files.addInput("--eval-data", options.train.evalData);
  files.addInput("--resume", options.train.resume);
  files.addInput("--weights-from", options.train.weightsFrom);
  if (options.command == "page")
    files.addInput("--compare", schedule.compare);
  files.addInput("--schedule", schedule.name);
  files.addInput("--measured", schedule.measured);
  for (llvm::StringRef name : llvm::split(options.command == "page" ? "" : schedule.compare, ","))
    files.addInput("--compare", name.str());
  if (options.command == "export")
    files.addOutputFolder("-o", options.output, onnx::isExportedName);
  else if (options.command == "plan" && (options.plan.wantsFront || options.top > 0))
    files.addOutputFolder("-o", options.output, isPlanName);
  else
    files.addOutput("-o", options.output);
  files.addOutputFolder("--dump-phases", compile.dumpPhases, isDumpName);
  files.addOutput("--outputs", options.outputs);
  files.addOutput("--save-inputs", options.saveInputs);
  // A run that is resumed may go on in the checkpoint that it has read.
  if (options.train.save != options.train.resume)
    files.addOutput("--save", options.train.save);
  files.addOutput("--log", options.train.log);
  files.addOutput("--export", options.trained);
  if (!options.trained.empty())
    files.addOutput("--export", onnx::getTrainedData(options.trained));
  files.addOutput("--export-adapters", options.adapters);
  if (!options.adapters.empty())
    files.addOutput("--export-adapters", onnx::getAdapterConfig(options.adapters));
  files.addOutput("--html", options.html);
  files.addOutput("--report", options.report);
  files.addOutput("--certificate", options.certificate);
  files.addOutput("--table", schedule.table);
  files.addOutput("--draw", schedule.draw);
  files.addStandardOutput();
  return files;
}
