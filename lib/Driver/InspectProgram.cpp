//===- InspectProgram.cpp - what is in a program file ---------------------===//
//
// What the library says of a program (cleave/Program/Summary.h), as text and as JSON. A program is known by its first
// bytes, whatever its name.
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/InspectProgram.h"

#include "cleave/Driver/Session.h"
#include "cleave/Pipelines/Report.h"
#include "cleave/Program/File.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Summary.h"
#include "cleave/Program/Words.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace cleave;
using namespace cleave::driver;
using namespace cleave::program;
using llvm::formatv;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static std::string formatSize(uint64_t bytes) { return formatv("{0} bytes ({1})", bytes, formatBytes(bytes)); }

/// What it was made of and for, a line each.
static void printHeader(llvm::raw_ostream &os, const Program &program) {
  const Metadata &about = program.metadata;
  os << "program version " << program.version;
  if (!about.model.empty())
    os << ", of " << cleave::quote(about.model) << (about.modelDigest.empty() ? "" : " digest " + about.modelDigest);
  os << (about.producer.empty() ? "" : ", by " + cleave::quote(about.producer)) << '\n';
  if (!about.precision.empty())
    os << "precision " << printable(about.precision) << '\n';
  for (const Target &target : program.targets)
    os << "target " << getWord(target.device) << ' ' << printable(target.architecture) << ' '
       << printable(llvm::join(target.features, " ")) << '\n';
  os << "mesh";
  for (const Axis &axis : program.axes)
    os << (&axis == &program.axes.front() ? " " : ", ") << printable(axis.name) << '=' << axis.size;
  os << " (" << program.ranks << (program.ranks == 1 ? " rank" : " ranks") << ")\n";
  for (const Groups &groups : program.groups)
    os << formatv("groups over {0}: {1} of {2} ranks, the first {3}\n", printable(groups.axes),
                  groups.ranks.size() / groups.size, groups.size,
                  formatRanks({groups.ranks.begin(), groups.ranks.begin() + groups.size}));
  size_t code = 0;
  for (const Module &module : program.modules)
    for (const Object &object : module.objects)
      code += object.code.size();
  os << formatv("kernels: {0}, {1} of code\n", program.kernels.size(), formatSize(code));
}

/// Where the bytes of each weight lie.
static void printWeights(llvm::raw_ostream &os, const Program &program) {
  uint64_t bytes = 0;
  for (const Weight &weight : program.weights)
    bytes += weight.parts.empty() ? getBytes(program.types[weight.type]) : 0;
  os << formatv("weights: {0}, {1}\n", program.weights.size(), formatSize(bytes));
  for (const Weight &weight : program.weights) {
    os << "  " << printable(weight.name) << "  " << format(program.types[weight.type]) << "  ";
    if (!weight.parts.empty())
      os << formatv("stack of {0} weights\n", weight.parts.size());
    else if (weight.file < 0)
      os << (weight.splat ? "splat\n" : "embedded\n");
    else
      os << formatv("{0} bytes {1} + {2}, digest {3}\n", printable(program.files[weight.file].path), weight.offset,
                    weight.length, weight.digest);
  }
}

/// ` [4, 8] from [0, 4]`; nothing of what is all of a tensor.
static std::string formatOrigin(const Origin &origin) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (!origin.shape.empty())
    os << formatv(" [{0:$[, ]}] from [{1:$[, ]}]", llvm::make_range(origin.shape.begin(), origin.shape.end()),
                  llvm::make_range(origin.starts.begin(), origin.starts.end()));
  return text;
}

/// The weight that a state begins as; null where that is zeros.
static const Weight *findBeginning(const Program &program, const Tensor &state) {
  const Place &place = state.places.front();
  for (const Load &load : program.roles[place.role].loads)
    if (load.target.buffer == place.view.buffer)
      return &program.weights[load.weight];
  return nullptr;
}

/// A line each: name, whole type, sharding, and what a rank of each role holds where.
static void printTensors(llvm::raw_ostream &os, const Program &program, llvm::StringRef title,
                         const std::vector<Tensor> &tensors) {
  os << title << ":\n";
  for (const Tensor &tensor : tensors) {
    os << "  " << printable(tensor.name) << "  " << format(program.types[tensor.type]) << "  "
       << printable(tensor.sharding) << (tensor.value.empty() ? "" : "  of one value");
    if (tensor.role != StepRole::None)
      os << "  " << getWord(tensor.role);
    if (!tensor.origin.name.empty())
      os << "  of " << printable(tensor.origin.name) << formatOrigin(tensor.origin);
    for (const Place &place : tensor.places)
      os << formatv("  {0}: {1}{2} in buffer {3}", printable(program.roles[place.role].name),
                    format(program.types[place.view.type]), place.present.empty() ? "" : " padded", place.view.buffer);
    os << '\n';
  }
}

/// Live bytes in at most ten rows, each the most of its commands.
static void printMemory(llvm::raw_ostream &os, const ListSummary &list) {
  double ratio = list.liveBytes ? double(list.arenaBytes) / double(list.liveBytes) : 1;
  os << formatv("memory: peak {0}, at least {1} live at once, ratio {2:f2}; weights {3}\n", formatSize(list.arenaBytes),
                formatSize(list.liveBytes), ratio, formatSize(list.weightBytes));
  constexpr size_t most = 10, width = 40;
  size_t count = list.commands.size(), rows = std::min(most, count);
  for (size_t row = 0; row < rows; ++row) {
    size_t first = row * count / rows, last = (row + 1) * count / rows - 1;
    uint64_t live = 0;
    for (size_t i = first; i <= last; ++i)
      live = std::max(live, list.commands[i].liveBytes);
    std::string bar(list.liveBytes ? size_t(double(live) / double(list.liveBytes) * width) : 0, '#');
    os << formatv("  commands {0,6} - {1,6}  {2,12}  {3}", first, last, live, bar);
    os << '\n';
  }
}

/// Of a step of training the bytes of a rank's inputs by what these are for.
static void printStepRoles(llvm::raw_ostream &os, const Program &program, const Variant &variant, size_t role) {
  std::string text;
  for (StepRole word = StepRole::Batch; word <= StepRole::Scale; word = StepRole(int(word) + 1)) {
    uint64_t bytes = 0;
    for (const Tensor &tensor : variant.inputs)
      for (const Place &place : tensor.places)
        if (tensor.role == word && place.role == role)
          bytes += getBytes(program.types[place.view.type]);
    if (bytes)
      text += (text.empty() ? "" : ", ") + std::string(getWord(word)) + " " + formatSize(bytes);
  }
  if (!text.empty())
    os << "  held for a step: " << text << '\n';
}

static void printList(llvm::raw_ostream &os, const Role &role, const ListSummary &list) {
  os << "role " << list.role << ": ranks " << formatRanks(list.ranks) << '\n';
  for (auto [i, buffer] : llvm::enumerate(role.buffers))
    os << formatv("  buffer {0}: {1}, {2} aligned to {3}{4}\n", i, getWord(buffer.kind), formatSize(buffer.bytes),
                  buffer.alignment, buffer.memory == Memory::Host ? ", on the host" : "");
  printMemory(os, list);
  os << "commands:\n";
  for (auto [i, command] : llvm::enumerate(list.commands)) {
    os << formatv("  {0,5}  stream {1}  {2,-14}  {3}", i, command.stream, command.kind, command.text);
    os << (command.node.empty() ? "" : "  " + command.node) << '\n';
  }
}

/// What a caller sees, then what ranks do, then what that sends.
static void printVariant(llvm::raw_ostream &os, const Program &program, const Variant &variant,
                         const VariantSummary &summary) {
  os << "variant" << (variant.entry.empty() ? "" : " of " + printable(variant.entry));
  for (const Dim &dim : variant.dims)
    os << ' ' << printable(dim.name) << '=' << dim.size;
  os << '\n';
  printTensors(os, program, "inputs", variant.inputs);
  printTensors(os, program, "outputs", variant.outputs);
  for (const State &state : variant.states) {
    if (state.output < 0)
      os << "state: input " << printable(variant.inputs[state.input].name) << " stays as it is";
    else
      os << "state: output " << printable(variant.outputs[size_t(state.output)].name) << " is the next input "
         << printable(variant.inputs[state.input].name);
    if (const Weight *weight = findBeginning(program, variant.inputs[state.input]))
      os << ", which begins as " << printable(weight->name);
    os << '\n';
  }
  for (auto [i, role, list] : llvm::enumerate(program.roles, summary.lists)) {
    printStepRoles(os, program, variant, i);
    printList(os, role, list);
  }
  os << "sent in a call:\n";
  for (const SentSummary &sent : summary.sent) {
    os << "  ranks " << formatRanks(sent.ranks) << ":";
    for (const auto &[kind, amount] : sent.kinds)
      os << formatv("  {0} {1} x, {2}", kind, amount.count, formatSize(amount.bytes));
    os << (sent.kinds.empty() ? " nothing\n" : "\n");
  }
}

static void printText(llvm::raw_ostream &os, const Program &program) {
  printHeader(os, program);
  printWeights(os, program);
  std::vector<VariantSummary> summaries = summarize(program);
  for (auto [variant, summary] : llvm::zip(program.variants, summaries))
    printVariant(os, program, variant, summary);
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static llvm::json::Array toJson(llvm::ArrayRef<uint32_t> numbers) {
  return llvm::json::Array(llvm::map_range(numbers, [](uint32_t number) { return int64_t(number); }));
}

static llvm::json::Value toJson(const Program &program, const Tensor &tensor) {
  llvm::json::Array shape(program.types[tensor.type].shape);
  llvm::json::Object object{{"name", llvm::json::fixUTF8(tensor.name)},
                            {"type", getWord(program.types[tensor.type].element)},
                            {"shape", std::move(shape)},
                            {"sharding", llvm::json::fixUTF8(tensor.sharding)}};
  if (!tensor.places.empty())
    object["local_shape"] = llvm::json::Array(program.types[tensor.places.front().view.type].shape);
  if (!tensor.places.empty() && !tensor.places.front().present.empty())
    object["padded"] = true;
  if (!tensor.value.empty())
    object["fixed"] = true;
  if (tensor.role != StepRole::None)
    object["role"] = getWord(tensor.role);
  if (const Origin &origin = tensor.origin; !origin.name.empty())
    object["origin"] = llvm::json::Object{{"name", llvm::json::fixUTF8(origin.name)},
                                          {"starts", llvm::json::Array(origin.starts)},
                                          {"shape", llvm::json::Array(origin.shape)}};
  return llvm::json::Value(std::move(object));
}

static llvm::json::Object toJson(const ListSummary &list) {
  llvm::json::Array commands;
  for (const CommandSummary &command : list.commands)
    commands.push_back(llvm::json::Object{{"stream", command.stream},
                                          {"kind", command.kind},
                                          {"text", llvm::json::fixUTF8(command.text)},
                                          {"node", llvm::json::fixUTF8(command.node)},
                                          {"sent_bytes", command.sentBytes},
                                          {"live_bytes", command.liveBytes},
                                          {"tensor_bytes", command.tensorBytes}});
  return llvm::json::Object{{"role", llvm::json::fixUTF8(list.role)}, {"ranks", toJson(list.ranks)},
                            {"arena_bytes", list.arenaBytes},         {"liveness_bound_bytes", list.liveBytes},
                            {"weight_bytes", list.weightBytes},       {"commands", std::move(commands)}};
}

/// Two names, and a third where the state begins as a weight.
static llvm::json::Object makeState(const Program &program, const Variant &variant, const State &state) {
  llvm::json::Object object{{"input", llvm::json::fixUTF8(variant.inputs[state.input].name)}};
  if (state.output >= 0)
    object["output"] = llvm::json::fixUTF8(variant.outputs[size_t(state.output)].name);
  if (const Weight *weight = findBeginning(program, variant.inputs[state.input]))
    object["begins"] = llvm::json::fixUTF8(weight->name);
  return object;
}

static llvm::json::Object toJson(const Program &program, const Variant &variant, const VariantSummary &summary) {
  llvm::json::Object dims;
  for (const Dim &dim : variant.dims)
    dims[llvm::json::fixUTF8(dim.name)] = dim.size;
  auto tensors = [&](const std::vector<Tensor> &list) {
    return llvm::json::Array(llvm::map_range(list, [&](const Tensor &tensor) { return toJson(program, tensor); }));
  };
  llvm::json::Array lists, sent, states;
  for (const State &state : variant.states)
    states.push_back(makeState(program, variant, state));
  for (const ListSummary &list : summary.lists)
    lists.push_back(toJson(list));
  for (const SentSummary &ranks : summary.sent) {
    llvm::json::Object kinds;
    for (const auto &[kind, amount] : ranks.kinds)
      kinds[kind] = llvm::json::Object{{"count", amount.count}, {"bytes", amount.bytes}};
    sent.push_back(llvm::json::Object{{"ranks", toJson(ranks.ranks)}, {"kinds", std::move(kinds)}});
  }
  llvm::json::Object object{
      {"dims", std::move(dims)},     {"inputs", tensors(variant.inputs)}, {"outputs", tensors(variant.outputs)},
      {"states", std::move(states)}, {"lists", std::move(lists)},         {"sent", std::move(sent)}};
  if (!variant.entry.empty())
    object["entry"] = llvm::json::fixUTF8(variant.entry);
  return object;
}

/// The form that docs/report.md fixes. Names are text of strangers: JSON wants UTF-8.
llvm::json::Object cleave::driver::toJson(const Program &program) {
  llvm::json::Object mesh;
  for (const Axis &axis : program.axes)
    mesh[llvm::json::fixUTF8(axis.name)] = axis.size;
  llvm::json::Array targets, kernels, weights, groups, variants;
  for (const Target &target : program.targets)
    targets.push_back(llvm::json::fixUTF8(getWord(target.device) + (":" + target.architecture)));
  for (const Kernel &kernel : program.kernels)
    kernels.push_back(llvm::json::fixUTF8(kernel.name));
  for (const Weight &weight : program.weights)
    weights.push_back(
        llvm::json::Object{{"name", llvm::json::fixUTF8(weight.name)},
                           {"type", getWord(program.types[weight.type].element)},
                           {"shape", llvm::json::Array(program.types[weight.type].shape)},
                           {"file", weight.file < 0 ? "" : llvm::json::fixUTF8(program.files[weight.file].path)}});
  for (const Groups &set : program.groups)
    groups.push_back(llvm::json::Object{
        {"axes", llvm::json::fixUTF8(set.axes)}, {"size", set.size}, {"ranks", ::toJson(set.ranks)}});
  std::vector<VariantSummary> summaries = summarize(program);
  for (auto [variant, summary] : llvm::zip(program.variants, summaries))
    variants.push_back(::toJson(program, variant, summary));
  return llvm::json::Object{{"version", program.version},
                            {"kind", "program"},
                            {"model", llvm::json::fixUTF8(program.metadata.model)},
                            {"targets", std::move(targets)},
                            {"mesh", std::move(mesh)},
                            {"ranks", program.ranks},
                            {"kernels", std::move(kernels)},
                            {"weights", std::move(weights)},
                            {"groups", std::move(groups)},
                            {"variants", std::move(variants)}};
}

std::optional<ExitCode> cleave::driver::inspectProgram(Session &session) {
  const std::string &path = session.getOptions().compile.model;
  bool isJson = session.getOptions().json;
  llvm::Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(path);
  if (!file || !isProgram((*file)->getBytes())) {
    llvm::consumeError(file.takeError()); // whoever reads it as a model says so
    if (isJson)
      return session.fail(makeError("{0}: is not a program file; --json is for these", path), Blame::Options);
    return std::nullopt;
  }
  if (std::optional<std::string> idle = findIdle(session.getOptions()))
    return printMistake(session.getOptions().command, *idle);
  Result<Program> program = readProgram((*file)->getBytes(), Verify(!session.getOptions().compile.ignoreDigests));
  if (!program)
    return session.fail(cleave::makeError("{0}: {1}", path, program.getError().message));
  if (isJson)
    llvm::outs() << formatv("{0:2}\n", llvm::json::Value(toJson(*program)));
  else
    printText(llvm::outs(), *program);
  return kDone;
}
