//===- ForeseenKernels.cpp - kernels as foreseen, and as formed -----------===//
//
// Deciding by time foresees which ops share a kernel (Solver/Launches.h), from sharding rules alone; fusion forms kernels (Exec/Fusion).
// Usage: cleave-foreseen-kernels FILE.mlir, a canonical module. For each op that computes, and each op that computes what it reads, seen
// through movement, both are asked whether the two are in one kernel:
//
//   agree nn.add nn.layer_norm             both say the same
//   foreseen nn.relu nn.add                one kernel is foreseen, and two are formed
//   formed nn.mul nn.reduce                two are foreseen, and one is formed
//   kernels 41 40                          foreseen, and formed
//
// What fusion computes in each of its readers has no kernel, and is not compared.
//
//===----------------------------------------------------------------------===//
#include "Launches.h"

#include "cleave/Dialect/Exec/Fusion/Clusters.h"
#include "cleave/Dialect/Spmd/Deciding/FunctionProblem.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Pipelines/Registration.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace cleave;

namespace {
class Comparison {
public:
  Comparison(Block &block, const spmd::FunctionProblem &problem);

  void print();

private:
  /// The kernel that an op is foreseen in; `kNone` for one that has none.
  spmd::NodeId getForeseen(Operation *op) const { return foreseen.lookup_or(op, spmd::kNone); }
  void compare(Operation &op, Value operand);

  Block &block;
  exec::Clusters clusters;
  llvm::DenseMap<Operation *, spmd::NodeId> foreseen;
};
} // namespace

Comparison::Comparison(Block &block, const spmd::FunctionProblem &problem)
    : block(block), clusters(block, exec::FusionCosts(spmd::Cluster().device)) {
  spmd::SearchGraph graph(problem.getProblem());
  spmd::Launches launches(graph, spmd::CostModel::create(spmd::Optimize::Time));
  for (auto [id, op] : llvm::enumerate(problem.getOps()))
    foreseen[op] = launches.kernelOf(graph.nodeOfOp(static_cast<spmd::OpId>(id)));
}

void Comparison::compare(Operation &op, Value operand) {
  Operation *maker = operand.getDefiningOp();
  if (!maker || clusters.isInlined(&op))
    return;
  if (getForeseen(maker) == spmd::kNone) {
    for (Value through : maker->getOperands())
      compare(op, through);
    return;
  }
  if (clusters.isInlined(maker))
    return;
  bool isForeseen = getForeseen(&op) == getForeseen(maker);
  const exec::Cluster *cluster = clusters.getCluster(&op);
  bool isFormed = cluster && cluster == clusters.getCluster(maker);
  llvm::outs() << (isForeseen == isFormed ? "agree "
                   : isForeseen           ? "foreseen "
                                          : "formed ")
               << maker->getName() << ' ' << op.getName() << '\n';
}

void Comparison::print() {
  llvm::DenseSet<spmd::NodeId> kernels;
  llvm::DenseSet<const exec::Cluster *> formed;
  for (Operation &op : block) {
    spmd::NodeId kernel = getForeseen(&op);
    if (kernel == spmd::kNone || clusters.isInlined(&op))
      continue;
    kernels.insert(kernel);
    formed.insert(clusters.getCluster(&op));
    for (Value operand : op.getOperands())
      compare(op, operand);
  }
  llvm::outs() << "kernels " << kernels.size() << ' ' << formed.size() << '\n';
}

/// On two ranks, of which both do all.
static LogicalResult compare(ModuleOp module) {
  auto mesh = spmd::MeshAttr::get(module.getContext(), {"x"}, {2}, {});
  module->setAttr(spmd::SpmdDialect::kMeshAttr, mesh);
  for (auto func : module.getOps<func::FuncOp>()) {
    std::unique_ptr<spmd::MeshAtoms> atoms = spmd::MeshAtoms::create(module);
    if (func.isExternal() || !atoms)
      continue;
    std::unique_ptr<spmd::FunctionProblem> problem = spmd::FunctionProblem::create(func, *atoms);
    if (!problem)
      return failure();
    Comparison(func.getBody().front(), *problem).print();
  }
  return success();
}

int main(int argc, char **argv) {
  if (argc != 2) {
    llvm::errs() << "usage: cleave-foreseen-kernels FILE.mlir\n";
    return 2;
  }
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(argv[1], &context);
  return module && succeeded(compare(*module)) ? 0 : 1;
}
