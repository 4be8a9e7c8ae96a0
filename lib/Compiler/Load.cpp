//===- Load.cpp - a model from its file -----------------------------------===//
//
// The first bytes and the name say what a file is: an ONNX model is mapped and imported, MLIR is read and parsed.
//
//===----------------------------------------------------------------------===//
#include "ProposeDims.h"
#include "State.h"

#include "cleave/Annotations/DevicePlan.h"
#include "cleave/Annotations/Properties.h"
#include "cleave/Compiler/Values.h"
#include "cleave/Dialect/Nn/IR/IndexRange.h"
#include "cleave/Dialect/Pipe/IR/NodeOrder.h"
#include "cleave/Dialect/Spmd/Annotations/Annotations.h"
#include "cleave/Import/Onnx/Import.h"
#include "cleave/Import/Onnx/ModulePaths.h"
#include "cleave/Import/Onnx/SingleWeights.h"
#include "cleave/Onnx/ExternalFiles.h"
#include "cleave/Plan/NamePattern.h"
#include "cleave/Program/Content.h"
#include "cleave/Support/Bytecode.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

#include <chrono>
#include <climits>
#include <unistd.h>

using namespace mlir;
using namespace cleave;

/// Weights of `graph` that modules read which rules pick. All of each such module are kept, since only import knows how many dims a tensor
/// has that is packed.
static void keepRead(const spmd::Plan &plan, const onnx::GraphProto &graph, llvm::StringSet<> &kept) {
  std::vector<spmd::NamePattern> patterns;
  for (const spmd::PlanRule &rule : plan.rules)
    if (rule.target == spmd::PlanRule::Target::Module)
      patterns.push_back(rule.getPattern());
  if (patterns.empty())
    return;
  for (const auto &entry : onnx::findReadingModules(graph))
    if (llvm::any_of(entry.getValue(), [&](StringRef module) {
          return llvm::any_of(patterns, [&](const spmd::NamePattern &pattern) { return pattern.matches(module); });
        }))
      kept.insert(entry.getKey());
}

/// Tensors of `graph` that the plan addresses by their whole name, or as operand or result of a node, or the weight of a module.
static void keepNamed(const spmd::Plan &plan, const onnx::GraphProto &graph, llvm::StringSet<> &kept) {
  keepRead(plan, graph, kept);
  llvm::MapVector<StringRef, SmallVector<const onnx::NodeProto *, 1>> nodes;
  for (const onnx::NodeProto &node : graph.node)
    nodes[node.name].push_back(&node);
  spmd::NameIndex index({llvm::make_first_range(nodes).begin(), llvm::make_first_range(nodes).end()});
  for (const spmd::PlanRule &rule : plan.rules) {
    if (rule.target == spmd::PlanRule::Target::Tensor) {
      if (spmd::NamePattern::isLiteral(rule.pattern) && rule.except.empty())
        kept.insert(rule.pattern);
      continue;
    }
    if (rule.target == spmd::PlanRule::Target::Module)
      continue;
    index.forEachMatch(rule.getPattern(), [&](size_t number) {
      for (const onnx::NodeProto *node : nodes.begin()[number].second) {
        ArrayRef<StringRef> list = rule.target == spmd::PlanRule::Target::Operand ? node->input : node->output;
        if (rule.index < list.size() && !list[rule.index].empty())
          kept.insert(list[rule.index]);
      }
    });
  }
}

/// Weights of one number: where ops have weights, and where the plan speaks of a number by its whole name as of what is trained. A pattern
/// may mean anything, so that it leaves constants what they are.
static void keepSingleWeights(const spmd::Plan *plan, const onnx::GraphProto &graph, llvm::StringSet<> &weights) {
  weights = onnx::findSingleWeights(graph);
  if (!plan || !plan->train)
    return;
  auto keep = [&](ArrayRef<spmd::PlanPattern> patterns) {
    for (const spmd::PlanPattern &pattern : patterns)
      if (spmd::NamePattern::isLiteral(pattern.text))
        weights.insert(pattern.text);
  };
  keep(plan->train->only);
  keep(plan->train->freeze);
  for (const spmd::PlanGroup &group : plan->train->groups)
    keep(group.tensors);
}

/// By name, or by the first tensor of those without one.
static ArrayAttr listNodes(const onnx::GraphProto &graph, MLIRContext *context) {
  SmallVector<StringRef> names;
  for (const onnx::NodeProto &node : graph.node)
    names.push_back(!node.name.empty() || node.output.empty() ? node.name : node.output.front());
  return Builder(context).getStrArrayAttr(names);
}

/// Those of the options first, then the plan's.
void Compilation::State::addDims(onnx::ImportOptions &import) {
  for (const auto &[name, size] : options.dims) {
    import.dims[name] = size;
    import.dimPlaces.emplace(name, FileLineColLoc::get(context.get(), "--dim", 1, 1));
  }
  if (!plan)
    return;
  for (const auto &[name, size] : plan->dims)
    if (import.dims.try_emplace(name, size).second) {
      const spmd::PlanPlace &place = plan->dimPlaces.at(name);
      import.dimPlaces.emplace(name, FileLineColLoc::get(context.get(), place.file, place.line, place.column));
    }
}

/// What was checked as it is written is checked again.
bool Compilation::State::resizePipeline() {
  const auto &[ranks, microbatches, chunks, schedule] = options.pipeline;
  if (!plan || !plan->pipeline || !(ranks || microbatches || chunks || !schedule.empty()))
    return true;
  auto resized = std::make_shared<spmd::Plan>(*plan);
  spmd::PlanPipeline &pipeline = *resized->pipeline;
  if (ranks) {
    auto axis = llvm::find_if(resized->mesh, [&](const spmd::MeshAxis &known) { return known.name == pipeline.axis; });
    if (axis == resized->mesh.end())
      axis = resized->mesh.insert(axis, {pipeline.axis, 1, pipeline.axisPlace});
    axis->size = static_cast<int64_t>(ranks);
  }
  if (microbatches) {
    pipeline.microbatches = static_cast<int64_t>(microbatches);
    pipeline.microbatchSize.reset();
  }
  if (chunks)
    pipeline.chunks = static_cast<int64_t>(chunks);
  if (!schedule.empty())
    pipeline.schedule = schedule;
  spmd::PlanError error;
  if (failed(spmd::checkPlan(*resized, error))) {
    (void)spmd::emitError(context.get(), error);
    return false;
  }
  handed.pipeline = plan = resized;
  if (handed.plan)
    handed.plan = plan;
  return true;
}

/// A model may say itself how it is split, which counts where no plan does. It is asked when it is read for the first time.
bool Compilation::State::takeDevicePlan(const onnx::ModelFile &model) {
  if (module || !onnx::hasDevicePlan(model.model))
    return true;
  Location loc = NameLoc::get(StringAttr::get(context.get(), model.file->getPath()));
  if (plan && !(plan->mesh.empty() && plan->rules.empty() && !plan->pipeline)) {
    emitWarning(loc) << "device annotations of the model are not read: the plan says how to split tensors";
    return true;
  }
  auto own = plan ? std::make_shared<spmd::Plan>(*plan) : std::make_shared<spmd::Plan>();
  spmd::PlanError error;
  std::vector<std::string> notes;
  if (failed(onnx::readDevicePlan(model, *own, error, notes))) {
    // The file has no lines; what a plan could not say either has a place of its own.
    if (error.place.line == 0)
      emitError(loc) << error.message;
    else
      (void)spmd::emitError(context.get(), error);
    return false;
  }
  for (const std::string &note : notes)
    emitWarning(loc) << note;
  plan = handed.plan = own;
  if (own->pipeline)
    handed.pipeline = own;
  return true;
}

/// Sizes that nobody gave stand as names. A plan's states and its cluster are read with a plan alone, so that they are held against those of who reads.
std::string Compilation::State::describeSettings(const onnx::GraphProto &graph, const onnx::ImportOptions &import) {
  std::string text = "cleave " CLEAVE_VERSION;
  for (const onnx::ValueInfoProto &input : graph.input) {
    text += (";" + input.name + ":").str();
    auto shape = import.shapes.find(input.name), array = import.arrayShapes.find(input.name);
    auto add = [&](const Twine &size) { text += (size + ",").str(); };
    if (shape != import.shapes.end())
      llvm::for_each(shape->second, [&](int64_t size) { add(Twine(size)); });
    else if (array != import.arrayShapes.end())
      llvm::for_each(array->second, [&](int64_t size) { add(Twine(size)); });
    else if (input.type.shape)
      for (const onnx::Dimension &dim : *input.type.shape) {
        auto given = import.dims.find(dim.param);
        dim.value ? add(Twine(*dim.value)) : given != import.dims.end() ? add(Twine(given->second)) : add(dim.param);
      }
  }
  text += llvm::formatv(";{0};{1}", int(options.sharding.optimize), options.sharding.keepPlan).str();
  if (plan)
    for (const spmd::PlanState &pair : plan->states)
      text += ";" + pair.input.text + "=" + pair.output.text;
  return text + (plan && plan->cluster ? ";" + plan->cluster->name : "");
}

/// Where the annotations of a model are those that come of the plan that it keeps, that one counts: it decides also of values that are
/// no tensors of the model, and asks nothing of those that nobody asked about.
void Compilation::State::takeOrigin(const onnx::ModelFile &model) {
  auto own = std::make_shared<spmd::Plan>(*plan);
  bool isOther = false, isFound = onnx::readOrigin(model, settings, *own, isOther);
  spmd::AttentionMethod &attention = options.sharding.attention;
  bool isAsked = attention == spmd::AttentionMethod::Auto || attention == own->attention;
  if (isFound && isAsked) {
    attention = own->attention;
    plan = handed.plan = own;
    handed.pipeline = own->pipeline ? plan : nullptr;
  } else if (isFound || isOther) {
    emitRemark(NameLoc::get(StringAttr::get(context.get(), model.file->getPath())))
        << "property '" << onnx::kPlanProperty
        << "' is about other annotations, sizes or options: what the annotations say is taken";
  }
}

/// How to close what is open: `for example --dim batch=4,seq=16`, and what must hold.
std::vector<std::string> Compilation::State::describeDims(onnx::ModelFile &model, const onnx::ImportOptions &import) {
  DimProposal proposal = proposeDims(context.get(), model, import, static_cast<int64_t>(options.exampleBatch));
  std::vector<std::string> notes;
  if (!proposal.sizes.empty())
    notes.push_back(
        "for example --dim " +
        llvm::join(llvm::map_range(proposal.sizes,
                                   [](const auto &dim) { return dim.first + "=" + std::to_string(dim.second); }),
                   ","));
  for (const DimRelation &relation : proposal.relations)
    notes.push_back("the model takes no other sizes than such that " + relation.format());
  return notes;
}

/// A shape that does not fit somewhere inside is seldom seen to come of two symbols that must be equal, or of positions that end.
void Compilation::State::warnOfDims(onnx::ModelFile &model, const onnx::ImportOptions &import) {
  std::map<std::string, int64_t> sizes;
  for (const auto &entry : import.dims)
    sizes[entry.getKey().str()] = entry.getValue();
  Location loc = NameLoc::get(StringAttr::get(context.get(), model.file->getPath()));
  DimProposal proposal = sizes.size() < 2 ? DimProposal() : proposeDims(context.get(), model, import, 0);
  for (const DimRelation &relation : proposal.relations) {
    std::optional<int64_t> size = relation.evaluate(sizes);
    auto given = sizes.find(relation.dim);
    if (size && given != sizes.end() && *size != given->second) {
      emitWarning(loc) << relation.format() << ", " << *size << " of the sizes that are given, and not "
                       << given->second;
      return;
    }
  }
  for (const auto &[dim, size] : sizes)
    if (std::optional<int64_t> most = findMost(context.get(), model, import, dim))
      emitWarning(loc) << "the model takes " << quote(dim) << " up to " << *most << ", and not " << size;
}

/// A model may say itself how it is trained, which counts where no plan does: its graph is then that of the step.
bool Compilation::State::takeTraining(onnx::ModelFile &model, onnx::ImportOptions &import) {
  hasOwnStep = options.train && !model.model.trainingInfo.empty() && !(plan && plan->train);
  Location loc = NameLoc::get(StringAttr::get(context.get(), model.file->getPath()));
  if (!hasOwnStep) {
    if (options.train && !model.model.trainingInfo.empty())
      emitRemark(loc) << "training_info is left out: 'train' of the plan says how the model is trained";
    return true;
  }
  llvm::Expected<onnx::TrainingStep> step = onnx::joinTraining(model.model);
  if (!step) {
    emitError(loc) << llvm::toString(step.takeError());
    return false;
  }
  import.step = std::move(*step);
  import.keepsGradients = options.keepsGradients;
  return true;
}

/// All that a user may know of an input goes in before import: nothing after it is symbolic.
OwningOpRef<ModuleOp> Compilation::State::importOnnx(std::shared_ptr<const MappedFile> file, bool collectAllErrors) {
  onnx::ImportOptions import;
  import.collectAllErrors = collectAllErrors;
  std::unique_ptr<onnx::ModelFile> model = onnx::readModel(context.get(), std::move(file));
  std::shared_ptr<const spmd::Plan> given = plan;
  if (!model || !takeDevicePlan(*model))
    return nullptr;
  externalFiles = onnx::listExternalFiles(*model);
  if (!takeTraining(*model, import))
    return nullptr;
  addDims(import);
  for (const auto &[name, shape] : options.shapes) {
    import.shapes[name].assign(shape.begin(), shape.end());
    import.shapePlaces.emplace(name, FileLineColLoc::get(context.get(), "--shape", 1, 1));
  }
  if (!options.inputs.empty()) {
    auto shapes = readInputShapes(options.inputs);
    if (!shapes) {
      fail(shapes.takeError());
      return nullptr;
    }
    // Of several steps of a call each has an input of the model.
    bool areOfSteps = options.train && options.stepsPerCall > 1;
    for (const auto &[name, shape] : *shapes)
      import.arrayShapes.try_emplace(name, shape.begin() + (areOfSteps && !shape.empty()), shape.end());
    using Values = llvm::Expected<std::map<std::string, reference::Tensor>>;
    Values values =
        areOfSteps ? Values(std::map<std::string, reference::Tensor>()) : readSmallInputs(*context, options.inputs);
    if (!values) {
      fail(values.takeError());
      return nullptr;
    }
    for (auto &[name, value] : *values)
      import.inputValues.try_emplace(name, std::move(value));
  }
  settings = describeSettings(model->model.graph, import);
  if (plan != given) {
    takeOrigin(*model);
    if (!resizePipeline())
      return nullptr;
  }
  if (plan)
    keepNamed(*plan, model->model.graph, import.kept);
  import.keepsWeights = options.train && !import.step;
  if (import.keepsWeights)
    keepSingleWeights(plan.get(), model->model.graph, import.singleWeights);
  if (artifacts)
    import.weights = artifacts->checkpoint.weights;
  import.keepsDropout =
      options.train && plan && plan->train && plan->train->dropout.kind != spmd::PlanDropout::Kind::Off;
  bool isOpen = false;
  import.noteOpen = [&] {
    isOpen = true;
    return describeDims(*model, import);
  };
  OwningOpRef<ModuleOp> made = onnx::importOnnx(context.get(), *model, import);
  if (!made && !isOpen)
    warnOfDims(*model, import);
  if (made && plan && plan->pipeline && !plan->pipeline->stages.empty())
    (*made)->setAttr(pipe::kNodesAttr, listNodes(model->model.graph, context.get()));
  return made;
}

/// True for what can only be an ONNX model: text has no control characters, and an ONNX model has some at its start
/// (the tag and the value of ir_version).
static bool looksLikeOnnx(StringRef bytes) {
  return !bytes.starts_with(kBytecodeMagic) && llvm::any_of(bytes.take_front(4096), [](unsigned char byte) {
    return byte < 0x20 && !StringRef("\t\n\v\f\r").contains(static_cast<char>(byte));
  });
}

/// The path behind `< model.onnx`, for the weights of an ONNX model stay in its file; `-` for all else.
static std::string nameStandardInput() {
  char start[4096], path[PATH_MAX];
  off_t position = ::lseek(STDIN_FILENO, 0, SEEK_CUR);
  ssize_t size = position < 0 ? -1 : ::pread(STDIN_FILENO, start, sizeof(start), position);
  if (size <= 0 || !looksLikeOnnx(StringRef(start, size)))
    return "-";
  ssize_t length = ::readlink("/proc/self/fd/0", path, sizeof(path));
  return length > 0 ? std::string(path, length) : "-";
}

/// What a file is that is no model; empty where it may be one.
static std::string describeNoModel(StringRef bytes) {
  program::Content content = program::findContent(bytes);
  if (content == program::Content::Mlir)
    return "";
  std::string other = program::describeOther(bytes, program::Content::Onnx, "a model");
  return other + (content == program::Content::Program ? ": cleave-run runs it, cleave inspect and cleave bench take it"
                  : content == program::Content::Plan  ? ": --plan takes it"
                                                       : "");
}

/// An ONNX model is mapped into `file`, everything else read into `buffer`.
static llvm::Error open(StringRef path, std::shared_ptr<const MappedFile> &file,
                        std::unique_ptr<llvm::MemoryBuffer> &buffer) {
  bool isText = path == "-" || path.ends_with(".mlir");
  if (!isText) {
    llvm::Expected<std::shared_ptr<const MappedFile>> mapped = MappedFile::open(path);
    if (!mapped)
      return mapped.takeError();
    if (std::string other = describeNoModel((*mapped)->getBytes()); !other.empty())
      return makeError("{0}: {1}", quote(path), other);
    if (!(*mapped)->getBytes().starts_with(kBytecodeMagic)) {
      file = std::move(*mapped);
      return llvm::Error::success();
    }
  }
  auto read = path == "-" ? llvm::MemoryBuffer::getSTDIN() : readBuffer(path);
  if (!read)
    return makeError("cannot read {0}: {1}", quote(path), read.getError().message());
  if (std::string other = describeNoModel((*read)->getBuffer()); !other.empty())
    return makeError("{0}: {1}", quote(path), other);
  if (path == "-" && looksLikeOnnx((*read)->getBuffer()))
    file = MappedFile::fromMemory("-", (*read)->getBuffer().str());
  else
    buffer = std::move(*read);
  return llvm::Error::success();
}

/// A mesh that nothing is split over may be one that was forgotten in the rules. Shardings in a file use it too. True if there is one.
static bool warnOfIdle(ModuleOp module, const spmd::Plan &plan, StringRef file) {
  if (getPhase(module) >= Phase::Annotated)
    return false;
  std::vector<spmd::PlanNote> notes = spmd::findIdle(plan);
  if (!file.empty() && plan.mesh.empty() && plan.dims.empty() && plan.rules.empty() && plan.states.empty() &&
      plan.bounds.empty() && plan.like.empty() && !plan.hasFree() && !plan.uneven && !plan.pipeline &&
      plan.attention == spmd::AttentionMethod::Auto && !plan.cluster && !plan.train)
    notes.push_back({{file.str(), 1, 1}, "the plan asks for nothing"});
  for (const spmd::PlanNote &note : notes)
    emitWarning(FileLineColLoc::get(module.getContext(), note.place.file, note.place.line, note.place.column))
        << note.message;
  return !notes.empty();
}

InputRanges cleave::readRanges(ModuleOp module) {
  InputRanges ranges;
  if (auto known = module->getAttrOfType<DictionaryAttr>(kRangesAttr)) {
    for (NamedAttribute entry : known)
      if (auto range = dyn_cast<IntegerAttr>(entry.getValue()))
        ranges[entry.getName().str()] = range.getInt();
    return ranges;
  }
  llvm::Expected<func::FuncOp> func = findEntry(module);
  if (func)
    return findRanges(*func);
  llvm::consumeError(func.takeError());
  return ranges;
}

llvm::Error cleave::warnOfArrays(ModuleOp module, StringRef inputs) {
  llvm::Expected<func::FuncOp> func = findEntry(module);
  if (func && !inputs.empty())
    return warnOfUnusedArrays(*func, inputs);
  llvm::consumeError(func.takeError());
  return llvm::Error::success();
}

OwningOpRef<ModuleOp> Compilation::State::load(bool collectAllErrors) {
  Telling telling(onProgress, "phase imported");
  auto start = std::chrono::steady_clock::now();
  auto [planFile, mesh, rules, states, free, uneven] =
      std::exchange<spmd::AnnotateOptions>(options.sharding, {}); // read once: here
  auto readPlan = [&, &planFile = planFile, &mesh = mesh, &rules = rules, &states = states, &free = free,
                   &uneven = uneven] {
    return spmd::readPlan(context.get(), {planFile,
                                          mesh,
                                          {rules.begin(), rules.end()},
                                          {states.begin(), states.end()},
                                          free,
                                          uneven,
                                          options.cluster,
                                          options.trainText,
                                          !options.artifacts.empty()});
  };
  FailureOr<spmd::PlanRef> read = readPlan();
  if (succeeded(read) && !(*read && (*read)->cluster) && !options.gpu.empty()) {
    options.cluster = options.gpu;
    read = readPlan();
  }
  if (failed(read))
    return nullptr;
  plan = *read;
  if (!options.artifacts.empty() && !takeArtifacts())
    return nullptr;
  // What the command line says of attention goes before what the plan says.
  if (plan && options.sharding.attention == spmd::AttentionMethod::Auto)
    options.sharding.attention = plan->attention;
  // A machine alone asks nothing of a program.
  if (plan && !(plan->mesh.empty() && plan->rules.empty() && plan->states.empty() && planFile.empty()))
    handed.plan = plan;
  if (plan && plan->pipeline)
    handed.pipeline = plan;
  if (!resizePipeline())
    return nullptr;
  if (options.model == "-")
    given.model = options.model = nameStandardInput();
  std::shared_ptr<const MappedFile> file;
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  if (llvm::Error error = open(options.model, file, buffer)) {
    fail(std::move(error));
    return nullptr;
  }
  hasOnnx = isChecked = file != nullptr;
  if (hasOnnx && !options.entry.empty()) {
    fail(makeError("--entry is about .mlir files; {0} is an ONNX model, which has one graph", options.model),
         Blame::Options);
    return nullptr;
  }
  if (hasOnnx && !options.weights.empty()) {
    fail(makeError("--weights is about .mlir files; those of {0} are in it or next to it", options.model),
         Blame::Options);
    return nullptr;
  }
  OwningOpRef<ModuleOp> loaded = file ? importOnnx(std::move(file), collectAllErrors) : parseMlir(std::move(buffer));
  addSeconds("import", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  if (loaded && cleave::getPhase(*loaded) == Phase::Imported)
    for (auto func : loaded->getOps<func::FuncOp>())
      nn::noteIndexRanges(func);
  if (loaded && plan && options.like.empty() && plan->like.empty())
    isLittleTold = warnOfIdle(*loaded, *plan, planFile); // that little is split is said already
  if (loaded)
    inputRanges = readRanges(*loaded);
  // A step has more inputs than the model.
  if (llvm::Error error = loaded && !options.train ? warnOfArrays(*loaded, options.inputs) : llvm::Error::success()) {
    fail(std::move(error));
    return nullptr;
  }
  return loaded;
}
