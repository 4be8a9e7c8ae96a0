//===- Kernel.cpp - kernels for devices -----------------------------------===//
//
// The same schedule as the host's, but for its first step: what would be filled before is refused, since threads of different
// blocks cannot wait for each other. One of these makes the kernel:
//
//   fill   the region's only op that fills its results by itself: its independent positions are threads
//   tile   blocks of an anchor, by a template of the anchor's lowering, with what is computed of them
//   row    rows of reductions                                                                  Device/Row.cpp
//   turn   a transpose that moves the last dim                                                 Device/Turn.cpp
//   map    every result element by itself: a vector of 16 bytes a thread
//
//===----------------------------------------------------------------------===//
#include "../Expand.h"
#include "../Scatter.h"
#include "Templates.h"
#include "cleave/Codegen/Device/Device.h"
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/Ops/Resize.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

int64_t cleave::codegen::getDeviceLanes(func::FuncOp region, int64_t extent) {
  int64_t least = 8, most = 8;
  auto note = [&](Type type) {
    least = std::min<int64_t>(least, llvm::divideCeil(cast<RankedTensorType>(type).getElementTypeBitWidth(), 8));
  };
  llvm::for_each(region.getArgumentTypes(), note);
  llvm::for_each(region.getResultTypes(), note);
  return std::gcd(std::min(16 / least, most), extent);
}

namespace {

class KernelWriter {
public:
  KernelWriter(func::FuncOp region, const CudaTarget &target)
      : region(region), schedule(region, Processor::Device), e(region.getContext(), region.getLoc(), target), store(e) {
  }
  DeviceKernel emit(StringRef name, ModuleOp kernels, ArrayRef<int64_t> inPlace, ArrayRef<int64_t> alignments,
                    bool always, bool reports);

private:
  gpu::GPUFuncOp makeFunction(StringRef name, ModuleOp kernels, ArrayRef<int64_t> inPlace, ArrayRef<int64_t> alignments,
                              bool reports);
  void describeBuffers(gpu::GPUFuncOp func, ArrayRef<int64_t> inPlace, ArrayRef<int64_t> alignments);
  Operation *findUpdated(ArrayRef<int64_t> inPlace);
  void compute();
  void fill(Operation *op);
  void runAnchor(const Anchor &anchor, ArrayRef<Result> group, function_ref<void(TileSink)> run);
  void map(ArrayRef<Result> group);
  int64_t countInFlight(int64_t vectors, int64_t count);
  void storeAt(ArrayRef<Result> group, ArrayRef<Value> places, int64_t lanes);
  bool isWalked();

  func::FuncOp region;
  Schedule schedule;
  DeviceEmitter e;
  ResultStore store;
  SmallVector<Result> results;
};

} // namespace

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

static gpu::GPUModuleOp getDeviceModule(ModuleOp kernels) {
  for (auto module : kernels.getOps<gpu::GPUModuleOp>())
    return module;
  kernels->setAttr(gpu::GPUDialect::getContainerModuleAttrName(), UnitAttr::get(kernels.getContext()));
  OpBuilder b = OpBuilder::atBlockEnd(kernels.getBody());
  return gpu::GPUModuleOp::create(b, kernels.getLoc(), "kernels");
}

/// Buffers apart from all others, which are only read, may be read through the cache that knows of no stores. What a template fills
/// by itself it may read again.
void KernelWriter::describeBuffers(gpu::GPUFuncOp func, ArrayRef<int64_t> inPlace, ArrayRef<int64_t> alignments) {
  unsigned count = region.getNumArguments();
  auto say = [&](unsigned index, StringRef name, Attribute what) { func.setArgAttr(index, name, what); };
  UnitAttr yes = e.b.getUnitAttr();
  ArrayRef<Type> inputs = func.getFunctionType().getInputs();
  for (auto [index, type] : llvm::enumerate(inputs.take_front(count + region.getNumResults()))) {
    auto memref = cast<MemRefType>(type);
    bool isResult = index >= count;
    bool isShared = isResult ? !inPlace.empty() && inPlace[index - count] >= 0 : llvm::is_contained(inPlace, index);
    bool isEmpty = memref.getNumElements() == 0;
    if (int64_t bytes = memref.getNumElements() * memref.getElementTypeBitWidth() / 8)
      say(index, LLVM::LLVMDialect::getDereferenceableAttrName(), e.b.getI64IntegerAttr(bytes));
    if (isEmpty)
      say(index, LLVM::LLVMDialect::getReadnoneAttrName(), yes);
    int64_t alignment = alignments.empty() ? kDeviceAlignment : alignments[index];
    say(index, LLVM::LLVMDialect::getAlignAttrName(), e.b.getI64IntegerAttr(alignment));
    e.setAlignment(func.getArgument(index), alignment);
    if (isShared || isEmpty)
      continue;
    say(index, LLVM::LLVMDialect::getNoAliasAttrName(), yes);
    if (!isResult)
      say(index, LLVM::LLVMDialect::getReadonlyAttrName(), yes);
    else if (schedule.filled.empty())
      say(index, LLVM::LLVMDialect::getWriteOnlyAttrName(), yes);
  }
}

/// A function with a buffer for each argument and result.
gpu::GPUFuncOp KernelWriter::makeFunction(StringRef name, ModuleOp kernels, ArrayRef<int64_t> inPlace,
                                          ArrayRef<int64_t> alignments, bool reports) {
  SmallVector<Type> types;
  for (Type type : llvm::concat<const Type>(region.getArgumentTypes(), region.getResultTypes()))
    types.push_back(flattenOnDevice(type));
  if (reports)
    types.push_back(getReportType(region.getContext()));
  e.b.setInsertionPointToEnd(getDeviceModule(kernels).getBody());
  auto func = gpu::GPUFuncOp::create(e.b, e.loc, name, e.b.getFunctionType(types, {}));
  func->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), e.b.getUnitAttr());
  describeBuffers(func, inPlace, alignments);
  Block &body = func.getBody().front();
  e.b.setInsertionPointToEnd(&body);
  gpu::ReturnOp::create(e.b, e.loc);
  e.start(func);
  for (auto [argument, buffer] : llvm::zip(region.getArguments(), body.getArguments()))
    e.bind(argument, buffer);
  if (reports)
    e.reportTo(body.getArguments().back());
  auto outputs = body.getArguments().slice(region.getNumArguments(), region.getNumResults());
  for (auto [value, buffer] : llvm::zip_equal(schedule.results, outputs))
    results.push_back({value, buffer});
  return func;
}

DeviceKernel KernelWriter::emit(StringRef name, ModuleOp kernels, ArrayRef<int64_t> inPlace,
                                ArrayRef<int64_t> alignments, bool always, bool reports) {
  gpu::GPUFuncOp func = makeFunction(name, kernels, inPlace, alignments, reports);
  llvm::erase_if(results, [](const Result &result) { return countElements(getShape(result.value)) == 0; });
  if (Operation *op = always ? findUpdated(inPlace) : nullptr)
    updateInPlace(e, op, results.front().buffer);
  else
    compute();
  if (!e.isLaunched())
    e.launch(1, kWarp); // nothing to compute
  func.setKnownBlockSize(ArrayRef<int32_t>{int32_t(e.getThreads()), 1, 1});
  return {name.str(), {uint32_t(e.getBlocks()), 1, 1}, {uint32_t(e.getThreads()), 1, 1}, uint32_t(e.getSharedBytes())};
}

/// A scatter whose result is all there is, and lies where what is updated does.
Operation *KernelWriter::findUpdated(ArrayRef<int64_t> inPlace) {
  if (results.size() != 1 || inPlace.size() != 1 || inPlace[0] < 0)
    return nullptr;
  auto op = dyn_cast_if_present<nn::FormOpInterface>(results[0].value.getDefiningOp());
  if (!op || op.getForm() != nn::Form::Scatter)
    return nullptr;
  Value input = op->getOperand(0);
  while (auto reshape = input.getDefiningOp<nn::ReshapeOp>())
    input = reshape.getInput();
  return input == region.getArgument(unsigned(inPlace[0])) ? op.getOperation() : nullptr;
}

/// Of what there is beside the anchor, results of one shape share their threads.
void KernelWriter::compute() {
  if (results.empty())
    return;
  if (!schedule.filled.empty())
    return fill(schedule.filled.front());
  if (const Anchor &anchor = schedule.anchor) {
    auto isAnchored = [&](const Result &result) { return anchor.has(result.value); };
    SmallVector<Result> group(llvm::make_filter_range(results, isAnchored));
    Operation *op = anchor.op;
    runAnchor(anchor, group, [&](TileSink sink) { getLowerings().find(op)->deviceTile->run(e, op, sink); });
    llvm::erase_if(results, isAnchored);
  } else if (!schedule.rows.swept.empty()) {
    return runRows(e, store, region, schedule.rows, results);
  } else if (std::optional<Anchor> turned = findTurned(region, results)) {
    return runAnchor(*turned, results, [&](TileSink sink) { runTurned(e, cast<nn::TransposeOp>(turned->op), sink); });
  }
  // The largest first: it says how many threads there are.
  auto isSmaller = [](const Result &x, const Result &y) {
    return countElements(getShape(x.value)) < countElements(getShape(y.value));
  };
  while (!results.empty()) {
    ArrayRef<int64_t> shape = getShape(llvm::max_element(results, isSmaller)->value);
    auto hasShape = [&](const Result &result) { return getShape(result.value) == shape; };
    map(llvm::to_vector(llvm::make_filter_range(results, hasShape)));
    llvm::erase_if(results, hasShape);
  }
}

void KernelWriter::fill(Operation *op) {
  SmallVector<Value> buffers;
  for (Value value : op->getResults())
    buffers.push_back(llvm::find_if(results, [&](const Result &result) { return result.value == value; })->buffer);
  const Lowering *lowering = getLowerings().find(op);
  if (!fillLines(e, op, buffers))
    (lowering->deviceFill ? lowering->deviceFill : lowering->fill)(e, op, buffers);
}

void KernelWriter::runAnchor(const Anchor &anchor, ArrayRef<Result> group, function_ref<void(TileSink)> run) {
  store.runAnchor(anchor, group, run);
}

/// True if neighbors along the last dim are of one slice that is updated, of one place that is resized, or of one window.
static bool walksTogether(Operation &op) {
  if (auto scatter = dyn_cast<nn::ScatterNdOp>(op))
    return getShape(scatter.getIndices()).back() < int64_t(getShape(scatter.getInput()).size());
  if (isa<nn::PoolOp>(op)) {
    auto turned = op.hasOneUse() ? dyn_cast<nn::TransposeOp>(*op.user_begin()) : nn::TransposeOp();
    return turned && turned.getPermutation().back() < 2;
  }
  auto resize = dyn_cast<nn::ResizeOp>(op);
  return resize && getShape(resize.getInput()).back() == getShape(resize.getResult()).back();
}

/// True if each element walks for itself, and shares nothing with its neighbors: then neighbors are threads.
bool KernelWriter::isWalked() {
  return llvm::any_of(region.front(), [](Operation &op) {
    const Lowering *lowering = getLowerings().find(&op);
    return lowering && lowering->fill && lowering->pull && !walksTogether(op);
  });
}

/// Lanes from each of some places on: what is stored is all computed before, so that what is loaded for it is on its way together.
void KernelWriter::storeAt(ArrayRef<Result> group, ArrayRef<Value> places, int64_t lanes) {
  ArrayRef<int64_t> shape = getShape(group.front().value);
  SmallVector<Point> points;
  for (Value linear : places) {
    Point &point = points.emplace_back();
    for (Value place : e.places.delinearize(linear, shape))
      point.push_back({place});
    if (lanes > 1)
      point.back().lane = 1;
  }
  auto overPoints = [&](function_ref<void(const Point &)> body) {
    for (auto [point, linear] : llvm::zip_equal(points, places)) {
      if (!shape.empty())
        e.places.know(point, shape, linear);
      body(point);
    }
  };
  e.withLanes(lanes, lanes, [&] {
    if (places.size() > 1)
      overPoints([&](const Point &point) {
        for (const Result &result : group)
          (void)e.eval(result.value, point);
      });
    overPoints([&](const Point &point) { store.storeAll(group, [&](const Result &) { return point; }); });
    return 0;
  });
}

/// How many vectors a thread has: where there are many, and few operands of as many elements, several, so that two to four loads are
/// on their way.
int64_t KernelWriter::countInFlight(int64_t vectors, int64_t count) {
  constexpr int64_t many = 1 << 19, wanted = 4;
  int64_t operands = llvm::count_if(
      region.getArgumentTypes(), [&](Type type) { return 2 * cast<RankedTensorType>(type).getNumElements() >= count; });
  int64_t each = operands == 0 ? 1 : std::max<int64_t>(wanted / operands, 1);
  return vectors >= many && vectors % (each * 256) == 0 && !isWalked() ? each : 1;
}

/// Of one dim, what is left behind the last whole vector goes to the first threads, one element each.
void KernelWriter::map(ArrayRef<Result> group) {
  ArrayRef<int64_t> shape = getShape(group.front().value);
  PlaceBuilder &p = e.places;
  int64_t count = countElements(shape), most = getDeviceLanes(region, 0);
  int64_t lanes = shape.empty() || isWalked() ? 1 : getDeviceLanes(region, shape.back()), rest = 0;
  if (shape.size() == 1 && !isWalked() && lanes < most && count / most >= most) {
    lanes = most;
    rest = count % most;
  }
  int64_t each = rest ? 1 : countInFlight(count / lanes, count), threads = count / lanes / each;
  e.overThreads(threads, [&](Value number) {
    SmallVector<Value> places;
    for (int64_t i = 0; i < each; ++i)
      places.push_back(p.mul(p.add(number, i * threads), lanes));
    storeAt(group, places, lanes);
    if (rest)
      e.when(p.isLess(number, rest), [&] { storeAt(group, p.add(number, count - rest), 1); });
  });
}

DeviceKernel cleave::codegen::emitDeviceKernel(Block &block, StringRef name, ModuleOp kernels, const CudaTarget &target,
                                               ArrayRef<int64_t> inPlace, ArrayRef<int64_t> alignments, bool always,
                                               bool reports) {
  [[maybe_unused]] std::string reason;
  assert(canEmitDevice(block, reason) && "no kernel of a device");
  OwningOpRef<func::FuncOp> region = prepareForDevice(block);
  return KernelWriter(*region, target).emit(name, kernels, inPlace, alignments, always, reports);
}
