//===- ProposeDims.cpp - sizes for dims that have none --------------------===//
//
// Exporters name the dims of inputs one by one, and do not say which must be equal: `batch` may be there twice. Shape inference meets them at
// some op; so the model is imported with a size of its own for each symbol, and where that is refused, with fewer:
//
//   batch=7 seq=13 rows=23    refused        batch=7 seq=13 rows=7    imported: 'rows' is 'batch'
//
// An error of shape inference says where two sizes meet, and neither which symbols these are nor whether others do elsewhere; trying asks all
// of the model at once, and takes milliseconds for models whose weights are not read.
//
// Shapes alone do not say that a mask must have a place for each key that is looked up in it. Where no input decides which places these are,
// they are computed, and sizes are proposed that have them all. What inputs decide shows in a run alone.
//
//===----------------------------------------------------------------------===//
#include "ProposeDims.h"

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Reference/Evaluator.h"
#include "cleave/Support/Status.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace cleave;

// Names are quoted, since a symbol may be any text.
std::string DimRelation::format() const {
  std::string text = llvm::join(llvm::map_range(terms, [](StringRef term) { return quote(term); }), " + ");
  return quote(dim) + " is " + text + (more ? " + " + std::to_string(more) : "");
}

// As exporters write it.
std::string DimRelation::formatSum() const {
  return llvm::join(terms, " + ") + (more ? " + " + std::to_string(more) : "");
}

// Nothing where a size that it needs is not there.
std::optional<int64_t> DimRelation::evaluate(const std::map<std::string, int64_t> &sizes) const {
  int64_t sum = more;
  for (const std::string &term : terms) {
    auto found = sizes.find(term);
    if (found == sizes.end())
      return std::nullopt;
    sum += found->second;
  }
  return sum;
}

namespace {
class DimProposer {
public:
  DimProposer(MLIRContext *context, onnx::ModelFile &model, const onnx::ImportOptions &given);

  void findRelations();
  void findSizes(int64_t batch);
  std::optional<int64_t> findMost(StringRef dim);
  DimProposal take() { return std::move(proposal); }

private:
  using Sizes = std::map<std::string, int64_t>;

  std::vector<DimRelation> listCandidates() const;
  bool complete(Sizes &sizes, ArrayRef<DimRelation> relations) const;
  bool holds(ArrayRef<DimRelation> relations);
  OwningOpRef<ModuleOp> import(const Sizes &sizes);
  bool imports(const Sizes &sizes) { return bool(import(sizes)); }
  bool finds(const Sizes &sizes);
  bool takeSizes(int64_t size, int64_t batch, ArrayRef<DimRelation> relations);

  MLIRContext *context;
  onnx::ModelFile &model;
  const onnx::ImportOptions &given;
  llvm::SetVector<StringRef> symbols;
  /// Sizes that inputs have without a name, which may be terms as well: a token at a time.
  llvm::SetVector<int64_t> fixed;
  int64_t trials;
  DimProposal proposal;
};
} // namespace

/// Small sizes alone can be terms that somebody meant; inputs whose shape is given have no open dims.
DimProposer::DimProposer(MLIRContext *context, onnx::ModelFile &model, const onnx::ImportOptions &given)
    : context(context), model(model), given(given) {
  constexpr int64_t kMostNodes = 100'000, kLeastTrials = 8, kMostTrials = 200;
  trials = std::clamp<int64_t>(kMostNodes / int64_t(model.model.graph.node.size() + 1), kLeastTrials, kMostTrials);
  for (const onnx::ValueInfoProto &input : model.model.graph.input)
    if (input.type.shape && !given.shapes.contains(input.name))
      for (const onnx::Dimension &dim : *input.type.shape) {
        if (!dim.param.empty())
          symbols.insert(dim.param);
        else if (dim.value && *dim.value > 0 && *dim.value <= 4)
          fixed.insert(*dim.value);
      }
}

/// Quietly: what is refused is what is asked. Null, too, where enough has been tried.
OwningOpRef<ModuleOp> DimProposer::import(const Sizes &sizes) {
  if (trials-- <= 0)
    return nullptr;
  onnx::ImportOptions options;
  options.shapes = given.shapes;
  options.arrayShapes = given.arrayShapes;
  options.inputValues = given.inputValues;
  for (const auto &[name, size] : sizes)
    options.dims[name] = size;
  ScopedDiagnosticHandler quiet(context, [](mlir::Diagnostic &) { return success(); });
  return onnx::importOnnx(context, model, options);
}

/// What makes `value`, in order; nothing where inputs or weights have a part in it, or it is much.
static std::optional<SmallVector<Operation *>> findMakers(Value value) {
  constexpr size_t kMostMakers = 200;
  llvm::SetVector<Operation *> found;
  SmallVector<Value> left{value};
  while (!left.empty()) {
    Operation *op = left.pop_back_val().getDefiningOp();
    if (!op || isa<nn::LoadOp>(op) || op->getNumRegions() > 0 || found.size() > kMostMakers)
      return std::nullopt;
    if (found.insert(op))
      left.append(op->operand_begin(), op->operand_end());
  }
  SmallVector<Operation *> makers = found.takeVector();
  llvm::sort(makers, [](Operation *lhs, Operation *rhs) { return lhs->isBeforeInBlock(rhs); });
  return makers;
}

/// False if a lookup with indices that no input decides does not find what it looks for. What it looks in are zeros.
static bool findsItsIndices(nn::LookupOpInterface lookup) {
  constexpr int64_t kMostElements = int64_t(1) << 20;
  std::optional<SmallVector<Operation *>> makers = findMakers(lookup.getIndices());
  auto isSmall = [&](Type type) { return cast<ShapedType>(type).getNumElements() <= kMostElements; };
  if (!makers || !llvm::all_of(lookup->getOperandTypes(), isSmall) || !llvm::all_of(lookup->getResultTypes(), isSmall))
    return true;
  // A function of its own: what else the model does takes long, and asks for weights.
  OpBuilder builder(lookup->getContext());
  OwningOpRef<ModuleOp> module = ModuleOp::create(lookup->getLoc());
  builder.setInsertionPointToEnd(module->getBody());
  SmallVector<Type> given;
  for (Value operand : lookup->getOperands())
    if (operand != lookup.getIndices())
      given.push_back(operand.getType());
  auto func =
      func::FuncOp::create(builder, lookup->getLoc(), "main", builder.getFunctionType(given, lookup->getResultTypes()));
  Block *body = func.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  IRMapping map;
  auto *argument = body->args_begin();
  for (Value operand : lookup->getOperands())
    if (operand != lookup.getIndices())
      map.map(operand, *argument++);
  for (Operation *maker : *makers)
    builder.clone(*maker, map);
  func::ReturnOp::create(builder, lookup->getLoc(), builder.clone(*lookup, map)->getResults());
  SmallVector<reference::Tensor> inputs, outputs;
  for (Type type : given)
    inputs.push_back(reference::Tensor::zeros(cast<RankedTensorType>(type)));
  return succeeded(reference::runGlobal(func, inputs, outputs));
}

/// The model can be imported, and what it looks up without asking any input is there.
bool DimProposer::finds(const Sizes &sizes) {
  OwningOpRef<ModuleOp> module = import(sizes);
  ScopedDiagnosticHandler quiet(context, [](mlir::Diagnostic &) { return success(); });
  return module && !module
                        ->walk([](nn::LookupOpInterface lookup) {
                          return findsItsIndices(lookup) ? WalkResult::advance() : WalkResult::interrupt();
                        })
                        .wasInterrupted();
}

/// Sizes of what is bound; false where it is bound to itself.
bool DimProposer::complete(Sizes &sizes, ArrayRef<DimRelation> relations) const {
  for (const DimRelation &relation : relations)
    sizes.erase(relation.dim);
  for (size_t step = 0; step < relations.size(); ++step)
    for (const DimRelation &relation : relations)
      if (std::optional<int64_t> size = relation.evaluate(sizes); size && sizes.count(relation.dim) == 0)
        sizes[relation.dim] = *size;
  return sizes.size() == symbols.size();
}

/// Sizes of which no two, and no two sums of two, are alike: what is imported with them needs no more relations than these.
bool DimProposer::holds(ArrayRef<DimRelation> relations) {
  static constexpr int64_t primes[] = {7, 13, 23, 31, 59, 73, 107, 139};
  Sizes sizes;
  for (auto [symbol, prime] : llvm::zip(symbols, primes))
    sizes[symbol.str()] = prime;
  return complete(sizes, relations) && imports(sizes);
}

/// Later symbols as earlier ones first, for that is what most exporters do.
std::vector<DimRelation> DimProposer::listCandidates() const {
  std::vector<DimRelation> equal, sums;
  for (StringRef dim : llvm::reverse(symbols))
    for (StringRef term : symbols) {
      if (term == dim)
        continue;
      bool isLater = llvm::find(symbols, dim) > llvm::find(symbols, term);
      if (isLater)
        equal.push_back({dim.str(), {term.str()}});
      for (int64_t more : fixed)
        sums.push_back({dim.str(), {term.str()}, more});
      for (StringRef other : symbols)
        if (other != dim && llvm::find(symbols, other) > llvm::find(symbols, term))
          sums.push_back({dim.str(), {term.str(), other.str()}});
    }
  llvm::append_range(equal, sums);
  return equal;
}

/// With as few as do; more than two have not been met.
void DimProposer::findRelations() {
  constexpr size_t kMostSymbols = 8;
  if (symbols.size() < 2 || symbols.size() > kMostSymbols || holds({}))
    return;
  std::vector<DimRelation> candidates = listCandidates();
  for (const DimRelation &candidate : candidates)
    if (holds({candidate})) {
      proposal.relations = {candidate};
      return;
    }
  for (auto [number, first] : llvm::enumerate(candidates))
    for (const DimRelation &second : llvm::drop_begin(candidates, number + 1))
      if (first.dim != second.dim && holds({first, second})) {
        proposal.relations = {first, second};
        return;
      }
}

/// Pictures of a common size, few tokens. False where the model does not take that.
bool DimProposer::takeSizes(int64_t size, int64_t batch, ArrayRef<DimRelation> relations) {
  Sizes sizes;
  for (StringRef symbol : symbols) {
    auto has = [&](StringRef word) { return symbol.contains_insensitive(word); };
    bool isPicture = has("height") || has("width");
    auto known = given.dims.find(symbol);
    sizes[symbol.str()] = known != given.dims.end() ? known->second
                          : has("batch")            ? batch
                          : isPicture               ? std::max<int64_t>(size, 224)
                                                    : size;
  }
  if (!complete(sizes, relations) || !finds(sizes))
    return false;
  for (StringRef symbol : symbols)
    if (!given.dims.contains(symbol))
      proposal.sizes.emplace_back(symbol.str(), sizes.at(symbol.str()));
  return true;
}

/// Or more, where parts of them must divide; or one more than another, where something is looked up behind its end: exporters write such sums
/// as dims of outputs, and these are tried first. That is an example, and nothing that must hold.
void DimProposer::findSizes(int64_t batch) {
  for (int64_t size : {16, 32, 64, 128, 256})
    if (takeSizes(size, batch, proposal.relations))
      return;
  llvm::StringSet<> written;
  for (const onnx::ValueInfoProto &output : model.model.graph.output)
    if (output.type.shape)
      for (const onnx::Dimension &dim : *output.type.shape)
        written.insert(dim.param);
  // Of equal symbols there are many that hold by chance, with sizes that nobody means.
  // Those that are written first, in their order; then the others in theirs.
  std::vector<DimRelation> candidates, rest;
  for (DimRelation &candidate : listCandidates())
    (!candidate.isEqual() && written.contains(candidate.formatSum()) ? candidates : rest)
        .push_back(std::move(candidate));
  llvm::append_range(candidates, rest);
  for (const DimRelation &candidate : candidates) {
    std::vector<DimRelation> relations = proposal.relations;
    relations.push_back(candidate);
    bool isOpen = !given.dims.contains(candidate.dim) &&
                  llvm::none_of(proposal.relations, [&](const DimRelation &one) { return one.dim == candidate.dim; });
    if (isOpen && takeSizes(16, batch, relations))
      return;
  }
}

/// Tables of positions end somewhere, and what is below their end is taken: so halves are tried. Where one is refused, it is no such bound.
std::optional<int64_t> DimProposer::findMost(StringRef dim) {
  Sizes sizes;
  for (const auto &entry : given.dims)
    sizes[entry.getKey().str()] = entry.getValue();
  auto takes = [&](int64_t size) {
    sizes[dim.str()] = size;
    return imports(sizes);
  };
  int64_t most = 1, refused = given.dims.lookup(dim);
  if (refused <= most || !takes(most))
    return std::nullopt;
  while (refused - most > 1) {
    int64_t middle = most + (refused - most) / 2;
    (takes(middle) ? most : refused) = middle;
  }
  // Out of trials nothing is taken, which says nothing.
  return trials > 0 && most > 1 ? std::optional<int64_t>(most) : std::nullopt;
}

std::optional<int64_t> cleave::findMost(MLIRContext *context, onnx::ModelFile &model, const onnx::ImportOptions &given,
                                        StringRef dim) {
  return DimProposer(context, model, given).findMost(dim);
}

DimProposal cleave::proposeDims(MLIRContext *context, onnx::ModelFile &model, const onnx::ImportOptions &given,
                                int64_t batch) {
  DimProposer proposer(context, model, given);
  proposer.findRelations();
  proposer.findSizes(batch);
  return proposer.take();
}
