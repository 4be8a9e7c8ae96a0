//===- Emitter.cpp - kernels by pulling, by many threads ------------------===//
//
// Accesses are as wide as the divisor of their place proves them aligned, at most 16 bytes, for every buffer begins at a multiple of
// 16.
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace cleave::codegen;

/// Address space of what every thread sees.
static constexpr int64_t kGlobal = 1;

MemRefType cleave::codegen::flattenOnDevice(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return MemRefType::get({tensor.getNumElements()}, ElementBuilder::getStoredType(tensor.getElementType()),
                         MemRefLayoutAttrInterface{},
                         IntegerAttr::get(IntegerType::get(type.getContext(), 64), kGlobal));
}

void DeviceEmitter::start(gpu::GPUFuncOp func) {
  kernel = func;
  Emitter::start(&func.getBody().front());
  thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  block = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

void DeviceEmitter::launch(int64_t wanted, int64_t each) {
  assert((threads == 0 || threads == each) && "launched twice");
  threads = each;
  blocks = std::max(blocks, wanted);
}

void DeviceEmitter::preferRegisters() {
  kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), b.getI32IntegerAttr(1));
}

Value DeviceEmitter::getGlobalThread() { return places.add(places.mul(block, threads), thread); }

/// Where other parts of the kernel have fixed the launch, its threads take turns.
void DeviceEmitter::overThreads(int64_t count, function_ref<void(Value)> body) {
  if (isLaunched() && count > blocks * threads) {
    loop(getGlobalThread(), places.number(count), blocks * threads, {}, [&](Value number, Values) {
      body(number);
      return Values();
    });
    return;
  }
  if (!isLaunched())
    launch(llvm::divideCeil(count, kUsualThreads), kUsualThreads);
  if (count == blocks * threads)
    return body(getGlobalThread());
  Value number = getGlobalThread();
  when(places.isLess(number, count), [&] { body(number); });
}

void DeviceEmitter::forAll(ArrayRef<int64_t> extents, function_ref<void(const Point &)> body) {
  overThreads(ShapedType::getNumElements(extents), [&](Value number) {
    Point point;
    for (Value place : places.delinearize(number, extents))
      point.push_back({place});
    body(point);
  });
}

Value DeviceEmitter::share(Type element, int64_t count) {
  sharedBytes += llvm::alignTo(count * llvm::divideCeil(element.getIntOrFloatBitWidth(), 8), 16);
  auto space = gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  auto type = MemRefType::get({count}, element, MemRefLayoutAttrInterface{}, space);
  Value shared = kernel.addWorkgroupAttribution(type, loc);
  kernel.setWorkgroupAttributionAttr(kernel.getNumWorkgroupAttributions() - 1, "llvm.align", b.getI64IntegerAttr(16));
  return shared;
}

Value DeviceEmitter::viewShared(Value bytes, int64_t from, Type element, int64_t count) {
  auto space = cast<MemRefType>(bytes.getType()).getMemorySpace();
  auto type = MemRefType::get({count}, ElementBuilder::getStoredType(element), MemRefLayoutAttrInterface{}, space);
  return memref::ViewOp::create(b, loc, type, bytes, places.number(from), ValueRange());
}

/// Past the first cache: what is copied is read from shared memory.
void DeviceEmitter::copyAsync(Value to, Value toPlace, Value from, Value fromPlace, Value present) {
  int64_t count = kDeviceAlignment * 8 / cast<MemRefType>(to.getType()).getElementTypeBitWidth();
  nvgpu::DeviceAsyncCopyOp::create(b, loc, nvgpu::DeviceAsyncTokenType::get(b.getContext()), to, toPlace, from,
                                   fromPlace, b.getIndexAttr(count), present, b.getUnitAttr());
}
void DeviceEmitter::commitCopies() { NVVM::CpAsyncCommitGroupOp::create(b, loc); }
void DeviceEmitter::waitForCopies(int64_t open) { NVVM::CpAsyncWaitGroupOp::create(b, loc, uint32_t(open)); }

void DeviceEmitter::barrier() { gpu::BarrierOp::create(b, loc); }

Value DeviceEmitter::ballot(Value condition) {
  Value all = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(-1));
  return NVVM::VoteSyncOp::create(b, loc, b.getI32Type(), all, condition, NVVM::VoteSyncKind::ballot);
}

/// While there are bits, the lowest goes.
void DeviceEmitter::overBits(Value bits, function_ref<void(Value)> body) {
  Type i32 = b.getI32Type();
  auto loop = scf::WhileOp::create(b, loc, TypeRange{i32}, ValueRange{bits});
  OpBuilder::InsertionGuard guard(b);
  Block *before = b.createBlock(&loop.getBefore(), {}, {i32}, {loc}),
        *after = b.createBlock(&loop.getAfter(), {}, {i32}, {loc});
  b.setInsertionPointToStart(before);
  Value left = before->getArgument(0), zero = elements.integer(i32, 0);
  scf::ConditionOp::create(b, loc, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, left, zero), left);
  b.setInsertionPointToStart(after);
  Value open = after->getArgument(0);
  Value number = LLVM::CountTrailingZerosOp::create(b, loc, i32, open, /*is_zero_poison=*/true);
  scoped([&] {
    body(arith::IndexCastOp::create(b, loc, b.getIndexType(), number));
    return 0;
  });
  Value without = arith::SubIOp::create(b, loc, open, elements.integer(i32, 1));
  scf::YieldOp::create(b, loc, ValueRange{arith::AndIOp::create(b, loc, open, without)});
}

void DeviceEmitter::raise(Value shared, Value value, Value at) {
  memref::AtomicRMWOp::create(b, loc, arith::AtomicRMWKind::maxs, value, shared, at);
}

Value DeviceEmitter::shuffle(Value value, int64_t mask) {
  return shuffle(value, arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(mask)), gpu::ShuffleMode::XOR);
}
Value DeviceEmitter::shuffleFrom(Value value, Value number) {
  return shuffle(value, arith::IndexCastOp::create(b, loc, b.getI32Type(), number), gpu::ShuffleMode::IDX);
}

/// In words of 32 bits.
Value DeviceEmitter::shuffle(Value value, Value offset, gpu::ShuffleMode mode) {
  Type type = value.getType(), i32 = b.getI32Type();
  Value width = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(kWarp));
  auto word = [&](Value from) -> Value {
    return gpu::ShuffleOp::create(b, loc, from, offset, width, mode).getShuffleResult();
  };
  unsigned bits = type.getIntOrFloatBitWidth();
  if (bits == 32)
    return word(value);
  Type integer = b.getIntegerType(bits);
  Value whole = type == integer ? value : Value(arith::BitcastOp::create(b, loc, integer, value));
  if (bits < 32) {
    whole = arith::TruncIOp::create(b, loc, integer, word(arith::ExtUIOp::create(b, loc, i32, whole)));
  } else {
    Value half = arith::ConstantOp::create(b, loc, b.getIntegerAttr(integer, 32));
    Value low = arith::TruncIOp::create(b, loc, i32, whole);
    Value high = arith::TruncIOp::create(b, loc, i32, arith::ShRUIOp::create(b, loc, whole, half));
    low = arith::ExtUIOp::create(b, loc, integer, word(low));
    high = arith::ExtUIOp::create(b, loc, integer, word(high));
    whole = arith::OrIOp::create(b, loc, low, arith::ShLIOp::create(b, loc, high, half));
  }
  return type == integer ? whole : Value(arith::BitcastOp::create(b, loc, type, whole));
}

/// A butterfly: in each step both of a pair combine the same two values, and what combines here commutes, so both have the same bits.
Values DeviceEmitter::acrossWarp(Values values, int64_t width, function_ref<Values(Values, Values)> combine) {
  for (int64_t apart = width / 2; apart > 0; apart /= 2) {
    Values others;
    for (Value value : values)
      others.push_back(shuffle(value, apart));
    values = combine(values, others);
  }
  return values;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value DeviceEmitter::allocate(Type, int64_t) { llvm_unreachable("a kernel of a device has no memory of its own"); }

Attribute DeviceEmitter::getTableSpace() const {
  return IntegerAttr::get(IntegerType::get(b.getContext(), 64), kGlobal);
}

int64_t DeviceEmitter::getAlignment(Value buffer) const {
  auto known = alignments.find(buffer);
  return known == alignments.end() ? kDeviceAlignment : known->second;
}

/// How many lanes lie together at `at` for certain, in one access.
int64_t DeviceEmitter::countTogether(Value buffer, Value at) const {
  int64_t alignment = getAlignment(buffer);
  int64_t bytes = llvm::divideCeil(cast<MemRefType>(buffer.getType()).getElementTypeBitWidth(), 8);
  int64_t together = std::gcd(PlaceBuilder::getDivisor(at), getLanes());
  together = int64_t(1) << llvm::countr_zero(uint64_t(together)); // accesses are powers of two
  return std::min(together, std::max<int64_t>(alignment / bytes, 1));
}

/// There is no lowering of vectors put into vectors, so they are made from their elements.
Value DeviceEmitter::loadVector(Value buffer, Value at) {
  Type stored = cast<MemRefType>(buffer.getType()).getElementType();
  int64_t together = countTogether(buffer, at);
  Values each;
  for (int64_t lane = 0; lane < getLanes(); lane += together) {
    Value place = places.add(at, lane);
    if (together == 1) {
      each.push_back(memref::LoadOp::create(b, loc, buffer, place));
      continue;
    }
    auto type = VectorType::get({together}, stored);
    llvm::MaybeAlign align(together * llvm::divideCeil(stored.getIntOrFloatBitWidth(), 8));
    Value piece = vector::LoadOp::create(b, loc, type, buffer, ValueRange{place}, false, align);
    if (together == getLanes())
      return piece;
    for (int64_t i = 0; i < together; ++i)
      each.push_back(vector::ExtractOp::create(b, loc, piece, i));
  }
  return vector::FromElementsOp::create(b, loc, VectorType::get({getLanes()}, stored), each);
}

void DeviceEmitter::storeVector(Value buffer, Value value, Value at) {
  Type stored = cast<MemRefType>(buffer.getType()).getElementType();
  int64_t together = countTogether(buffer, at);
  for (int64_t lane = 0; lane < getLanes(); lane += together) {
    Value place = places.add(at, lane);
    if (together == 1) {
      memref::StoreOp::create(b, loc, takeLanes(value, lane, 1), buffer, place);
      continue;
    }
    Value piece = value;
    if (together < getLanes()) {
      Values each;
      for (int64_t i = 0; i < together; ++i)
        each.push_back(takeLanes(value, lane + i, 1));
      piece = vector::FromElementsOp::create(b, loc, VectorType::get({together}, stored), each);
    }
    llvm::MaybeAlign align(together * llvm::divideCeil(stored.getIntOrFloatBitWidth(), 8));
    vector::StoreOp::create(b, loc, piece, buffer, ValueRange{place}, false, align);
  }
}

/// Positions may have 32 bits: what has more is brought into their range first, so that it is still out of any dim's.
Value DeviceEmitter::toPlace(Value index) {
  if (index.getType().getIntOrFloatBitWidth() == 64) {
    Value low = elements.integer(index.getType(), INT32_MIN / 2),
          high = elements.integer(index.getType(), INT32_MAX / 2);
    index = arith::MinSIOp::create(b, loc, arith::MaxSIOp::create(b, loc, index, low), high);
  }
  return Emitter::toPlace(index);
}
