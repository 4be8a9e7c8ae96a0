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
//===----------------------------------------------------------------------===//
#include "ProposeDims.h"

#include "cleave/Support/Status.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace cleave;

// Names are quoted, since a symbol may be any text.
std::string DimRelation::format() const {
  std::string text = llvm::join(llvm::map_range(terms, [](StringRef term) { return quote(term); }), " + ");
  return quote(dim) + " is " + text + (more ? " + " + std::to_string(more) : "");
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
  DimProposal take() { return std::move(proposal); }

private:
  using Sizes = std::map<std::string, int64_t>;

  std::vector<DimRelation> listCandidates() const;
  bool complete(Sizes &sizes, ArrayRef<DimRelation> relations) const;
  bool holds(ArrayRef<DimRelation> relations);
  bool imports(const Sizes &sizes);

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

/// Quietly: what is refused is what is asked.
bool DimProposer::imports(const Sizes &sizes) {
  if (trials-- <= 0)
    return false;
  onnx::ImportOptions options;
  options.shapes = given.shapes;
  options.arrayShapes = given.arrayShapes;
  options.inputValues = given.inputValues;
  for (const auto &[name, size] : sizes)
    options.dims[name] = size;
  ScopedDiagnosticHandler quiet(context, [](mlir::Diagnostic &) { return success(); });
  return onnx::importOnnx(context, model, options).get() != nullptr;
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

/// Pictures of a common size, few tokens; or more, where parts of them must divide.
void DimProposer::findSizes(int64_t batch) {
  for (int64_t size : {16, 32, 64, 128, 256}) {
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
    if (!complete(sizes, proposal.relations) || !imports(sizes))
      continue;
    for (StringRef symbol : symbols)
      if (!given.dims.contains(symbol))
        proposal.sizes.emplace_back(symbol.str(), sizes.at(symbol.str()));
    return;
  }
}

DimProposal cleave::proposeDims(MLIRContext *context, onnx::ModelFile &model, const onnx::ImportOptions &given,
                                int64_t batch) {
  DimProposer proposer(context, model, given);
  proposer.findRelations();
  proposer.findSizes(batch);
  return proposer.take();
}
