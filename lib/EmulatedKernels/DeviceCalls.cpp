//===- DeviceCalls.cpp - calls of the emulator in place of a GPU's own ----===//
//
// An intrinsic of NVVM says in its name what it does. Those that MLIR's translation makes are known here by that name; any
// other is an error, for what is left out silently would be taken for tested.
//
//   llvm.nvvm.read.ptx.sreg.tid.x()        readRegister(0), which may be called once for all its uses
//   llvm.nvvm.barrier.cta.sync.aligned..   barrier(site): the thread waits for those of its block
//   llvm.nvvm.shfl.sync.bfly.f32(..)       meetWarp(kind, mask, words in, words out, site), as all that lanes do together
//   llvm.nvvm.cp.async.ca..(to, from)      copyAsync(to, from, bytes, filled, site of the store, site of the load)
//   __nv_expf(x)                           expf(x)
//
//===----------------------------------------------------------------------===//
#include "DeviceCalls.h"

#include "cleave/Codegen/CompileObject.h"
#include "cleave/Emulation/Module.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;
using namespace cleave;
using namespace cleave::codegen;
using emulation::WarpKind;

HookCaller::HookCaller(Module &module) : b(module.getContext()), module(module) {
  hooks = new GlobalVariable(module, b.getPtrTy(), false, GlobalValue::InternalLinkage,
                             ConstantPointerNull::get(b.getPtrTy()), "cleave.hooks");
}

/// The table is there before anything runs, and stays.
static LoadInst *loadInvariant(IRBuilder<> &b, Value *from) {
  LoadInst *load = b.CreateLoad(b.getPtrTy(), from);
  load->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(b.getContext(), {}));
  return load;
}

/// Threads meet in some of these functions, so that code around them may not be copied or moved; others read what never
/// changes for a thread, and may be called once for all.
CallInst *HookCaller::call(Hook hook, Type *result, ArrayRef<Value *> arguments) {
  SmallVector<Type *> types;
  for (Value *argument : arguments)
    types.push_back(argument->getType());
  Value *table = loadInvariant(b, hooks);
  Value *function = loadInvariant(b, b.CreateConstGEP1_32(b.getPtrTy(), table, unsigned(hook)));
  CallInst *call = b.CreateCall(FunctionType::get(result, types, false), function, arguments);
  call->addFnAttr(Attribute::NoUnwind);
  if (hook == Hook::ReadRegister || hook == Hook::GetShared) {
    call->setDoesNotAccessMemory();
    call->addFnAttr(Attribute::WillReturn);
  } else if (hook == Hook::Barrier || hook == Hook::MeetWarp) {
    call->addFnAttr(Attribute::Convergent);
    call->addFnAttr(Attribute::NoDuplicate);
  }
  return call;
}

GlobalVariable *HookCaller::makeConstant(Constant *value) {
  return new GlobalVariable(module, value->getType(), true, GlobalValue::InternalLinkage, value);
}

Constant *HookCaller::makeText(StringRef text) {
  return makeConstant(ConstantDataArray::getString(module.getContext(), text));
}

/// One for each place in the code, made when it is compiled: a check costs the call and nothing to set it up.
Constant *HookCaller::makeSite(const Instruction &at, uint32_t flags, uint32_t bytes, uint32_t alignment,
                               uint32_t object) {
  Constant *source = ConstantPointerNull::get(b.getPtrTy());
  if (const DILocation *place = at.getDebugLoc())
    source = makeText((place->getFilename() + ":" + Twine(place->getLine())).str());
  return makeConstant(ConstantStruct::getAnon(
      {b.getInt32(flags), b.getInt32(bytes), b.getInt32(alignment), b.getInt32(object), b.getInt32(sites++), source}));
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// As Hooks::readRegister numbers them.
static constexpr StringLiteral registers[] = {"tid.x",    "tid.y",    "tid.z",  "ctaid.x", "ctaid.y",
                                              "ctaid.z",  "ntid.x",   "ntid.y", "ntid.z",  "nctaid.x",
                                              "nctaid.y", "nctaid.z", "laneid", "warpid",  "warpsize"};

/// Of an operation of a warp: what it is, and whether its first operand is the mask of its lanes.
struct WarpOperation {
  WarpKind kind;
  bool hasMask = true;
};

/// By the whole name: variants with another type or shape are not known.
static std::optional<WarpOperation> getWarpOperation(StringRef name) {
  // A shuffle's name goes on with the type of its value: words of 32 bits all.
  for (auto [mode, kind] : {std::pair("bfly", WarpKind::ShuffleXor), std::pair("up", WarpKind::ShuffleUp),
                            std::pair("down", WarpKind::ShuffleDown), std::pair("idx", WarpKind::ShuffleIndex)})
    // Values are words of 32 bits; with a p behind, the result says whether the lane was there.
    for (StringRef type : {".i32", ".f32", ".i32p", ".f32p"})
      if (name == ("shfl.sync." + Twine(mode) + type).str())
        return WarpOperation{kind};
  using Found = std::optional<WarpOperation>;
  auto alone = [](WarpKind kind) { return Found(WarpOperation{kind, false}); };
  auto masked = [](WarpKind kind) { return Found(WarpOperation{kind}); };
  name.consume_back(".p0") || name.consume_back(".p3");
  return StringSwitch<Found>(name)
      .Case("bar.warp.sync", masked(WarpKind::Sync))
      .Case("vote.all.sync", masked(WarpKind::VoteAll))
      .Case("vote.any.sync", masked(WarpKind::VoteAny))
      .Case("vote.uni.sync", masked(WarpKind::VoteUniform))
      .Case("vote.ballot.sync", masked(WarpKind::Ballot))
      .Case("match.any.sync.i32", masked(WarpKind::MatchAny))
      .Case("mma.m16n8k16.row.col.f32.f32", alone(WarpKind::MultiplyF16K16))
      .Case("mma.m16n8k16.row.col.bf16", alone(WarpKind::MultiplyBf16K16))
      .Case("mma.m16n8k8.row.col.tf32", alone(WarpKind::MultiplyTf32K8))
      .Case("mma.m16n8k8.row.col.f32.f32", alone(WarpKind::MultiplyF16K8))
      .Case("mma.m16n8k8.row.col.bf16", alone(WarpKind::MultiplyBf16K8))
      .Case("ldmatrix.sync.aligned.m8n8.x1.b16", alone(WarpKind::LoadMatrix1))
      .Case("ldmatrix.sync.aligned.m8n8.x2.b16", alone(WarpKind::LoadMatrix2))
      .Case("ldmatrix.sync.aligned.m8n8.x4.b16", alone(WarpKind::LoadMatrix4))
      .Case("ldmatrix.sync.aligned.m8n8.x1.trans.b16", alone(WarpKind::LoadMatrix1Turned))
      .Case("ldmatrix.sync.aligned.m8n8.x2.trans.b16", alone(WarpKind::LoadMatrix2Turned))
      .Case("ldmatrix.sync.aligned.m8n8.x4.trans.b16", alone(WarpKind::LoadMatrix4Turned))
      .Default(std::nullopt);
}

/// redux.sync has its mask last.
static std::optional<WarpKind> getReduction(StringRef name) {
  return StringSwitch<std::optional<WarpKind>>(name)
      .Case("redux.sync.add", WarpKind::ReduceAdd)
      .Case("redux.sync.min", WarpKind::ReduceMin)
      .Case("redux.sync.max", WarpKind::ReduceMax)
      .Case("redux.sync.umin", WarpKind::ReduceUMin)
      .Case("redux.sync.umax", WarpKind::ReduceUMax)
      .Case("redux.sync.and", WarpKind::ReduceAnd)
      .Case("redux.sync.or", WarpKind::ReduceOr)
      .Case("redux.sync.xor", WarpKind::ReduceXor)
      .Default(std::nullopt);
}

/// The C library's function of an approximation or a rounding that NVVM names; empty: there is none.
static StringRef getFunction(StringRef name) {
  return StringSwitch<StringRef>(name)
      .Cases({"ex2.approx.f", "ex2.approx.f32", "ex2.approx.ftz.f", "ex2.approx.ftz.f32"}, "exp2f")
      .Cases({"lg2.approx.f", "lg2.approx.ftz.f"}, "log2f")
      .Cases({"sqrt.approx.f", "sqrt.approx.ftz.f", "sqrt.rn.f", "sqrt.rn.ftz.f", "sqrt.f"}, "sqrtf")
      .Cases({"sin.approx.f", "sin.approx.ftz.f"}, "sinf")
      .Cases({"cos.approx.f", "cos.approx.ftz.f"}, "cosf")
      .Cases({"fma.rn.f", "fma.rn.ftz.f"}, "fmaf")
      .Cases({"tanh.approx.f", "tanh.approx.f32"}, "tanhf")
      .Default("");
}

/// libdevice's functions whose names, without `__nv_`, are those of the C library; with an f behind for f32.
static bool isOfLibm(StringRef name, bool isFloat) {
  static constexpr StringLiteral names[] = {
      "acos",      "acosh", "asin",  "asinh", "atan",  "atan2", "atanh", "cbrt",  "ceil", "copysign",
      "cos",       "cosh",  "erf",   "erfc",  "exp",   "exp10", "exp2",  "expm1", "fabs", "floor",
      "fma",       "fmax",  "fmin",  "fmod",  "hypot", "log",   "log10", "log1p", "log2", "pow",
      "remainder", "rint",  "round", "sin",   "sinh",  "sqrt",  "tan",   "tanh",  "trunc"};
  return (!isFloat || name.consume_back("f")) && is_contained(names, name);
}

//===----------------------------------------------------------------------===//
// Replacing
//===----------------------------------------------------------------------===//

namespace {
class Replacer {
public:
  Replacer(Function &kernel, HookCaller &caller, SmallVectorImpl<RangeAccess> &accesses)
      : kernel(kernel), caller(caller), b(caller.b), accesses(accesses) {}

  /// One call, whatever it is; an error if nobody knows it.
  Error replace(CallInst &call) {
    b.SetInsertPoint(&call);
    b.SetCurrentDebugLocation(call.getDebugLoc());
    if (call.isInlineAsm())
      return fail("assembly of the device, '" + cast<InlineAsm>(call.getCalledOperand())->getAsmString().str() + "'");
    Function *callee = call.getCalledFunction();
    if (!callee)
      return fail("a call by address");
    StringRef name = callee->getName();
    if (name.consume_front("llvm.nvvm."))
      return replaceIntrinsic(call, name) ? Error::success() : fail("the intrinsic '" + callee->getName().str() + "'");
    if (name.consume_front("__nv_"))
      return replaceLibdevice(call, name) ? Error::success() : fail("the function '" + callee->getName().str() + "'");
    return replaceOther(call);
  }

private:
  /// Whoever adds an op to a kernel reads this first.
  Error fail(const std::string &what) {
    return makeError("kernel {0}: the emulated device does not know {1}", quote(kernel.getName()), what);
  }
  /// In the place of the call.
  void put(CallInst &call, Value *value) {
    if (value)
      call.replaceAllUsesWith(value);
    call.eraseFromParent();
  }
  /// The same arguments and result under another name, which the linker finds in the C library.
  CallInst *callLibrary(StringRef name, CallInst &call) {
    FunctionCallee function = kernel.getParent()->getOrInsertFunction(name, call.getFunctionType());
    return b.CreateCall(function, SmallVector<Value *>(call.args()));
  }
  Error replaceOther(CallInst &call);
  bool replaceIntrinsic(CallInst &call, StringRef name);
  bool replaceSimple(CallInst &call, StringRef name);
  Value *flush(Value *number);
  bool replaceAsync(CallInst &call, StringRef name);
  bool replaceLibdevice(CallInst &call, StringRef name);
  void replaceWarp(CallInst &call, WarpKind kind, Value *mask, ArrayRef<Value *> operands);
  Value *makeWords(ArrayRef<Value *> operands);
  Value *readWords(Value *words, Type *type);

  Function &kernel;
  HookCaller &caller;
  IRBuilder<> &b;
  SmallVectorImpl<RangeAccess> &accesses;
};
} // namespace

/// What LLVM itself knows on every machine stays; of that, memory that is moved is told.
Error Replacer::replaceOther(CallInst &call) {
  auto *intrinsic = dyn_cast<IntrinsicInst>(&call);
  if (!intrinsic)
    return fail("the function '" + call.getCalledFunction()->getName().str() + "'");
  if (auto *memory = dyn_cast<MemIntrinsic>(intrinsic)) {
    accesses.push_back({memory, memory->getRawDest(), memory->getLength(), emulation::accessStores, 0, 0});
    if (auto *transfer = dyn_cast<MemTransferInst>(memory))
      accesses.push_back({memory, transfer->getRawSource(), memory->getLength(), 0, 0, 0});
    return Error::success();
  }
  bool isHarmless = intrinsic->isAssumeLikeIntrinsic() || isa<DbgInfoIntrinsic>(intrinsic) ||
                    intrinsic->getIntrinsicID() == Intrinsic::fake_use || !intrinsic->mayReadOrWriteMemory();
  return isHarmless ? Error::success()
                    : fail("the intrinsic '" + intrinsic->getCalledFunction()->getName().str() + "'");
}

/// False if nobody knows the name.
bool Replacer::replaceIntrinsic(CallInst &call, StringRef name) {
  if (std::optional<WarpOperation> operation = getWarpOperation(name)) {
    SmallVector<Value *> operands(call.args());
    Value *mask = operation->hasMask ? operands[0] : b.getInt32(~0u);
    replaceWarp(call, operation->kind, mask, ArrayRef(operands).drop_front(operation->hasMask));
    return true;
  }
  if (std::optional<WarpKind> kind = getReduction(name)) {
    replaceWarp(call, *kind, call.getArgOperand(1), {call.getArgOperand(0)});
    return true;
  }
  return replaceSimple(call, name) || replaceAsync(call, name);
}

/// Registers, barriers, fences, approximations.
bool Replacer::replaceSimple(CallInst &call, StringRef name) {
  if (name.consume_front("read.ptx.sreg.")) {
    const StringLiteral *found = llvm::find(registers, name);
    if (found == std::end(registers))
      return false;
    put(call, caller.call(Hook::ReadRegister, b.getInt32Ty(), {b.getInt32(uint32_t(found - registers))}));
    return true;
  }
  if (name == "barrier0" || name == "barrier.cta.sync.aligned.all" || name == "barrier.cta.sync.all") {
    Constant *site = caller.makeSite(call, 0, 0, 1, emulation::unknownObject);
    caller.call(Hook::Barrier, b.getVoidTy(), {site});
    put(call, nullptr);
    return true;
  }
  // Threads of a block run one after the other: what one has written all see.
  if (name == "membar.cta" || name == "membar.gl" || name == "membar.sys") {
    put(call, nullptr);
    return true;
  }
  // To 10 bits of fraction, halves away from zero: carries go into the exponent. NaN and infinity stay.
  if (name == "f2tf32.rna") {
    Value *bits = b.CreateBitCast(call.getArgOperand(0), b.getInt32Ty());
    Value *isFinite = b.CreateICmpULT(b.CreateAnd(bits, b.getInt32(0x7fffffff)), b.getInt32(0x7f800000));
    Value *rounded = b.CreateAnd(b.CreateAdd(bits, b.getInt32(0x1000)), b.getInt32(0xffffe000));
    put(call, b.CreateSelect(isFinite, rounded, bits));
    return true;
  }
  bool flushes = name.contains(".ftz") && call.getType()->isFloatTy();
  if (flushes)
    for (Use &operand : call.args())
      operand = flush(operand);
  Value *one = call.getType()->isFloatingPointTy() ? ConstantFP::get(call.getType(), 1) : nullptr, *result = nullptr;
  if (StringRef function = getFunction(name); !function.empty())
    result = callLibrary(function, call);
  else if (name.starts_with("rcp."))
    result = b.CreateFDiv(one, call.getArgOperand(0));
  else if (name.starts_with("rsqrt.approx"))
    result = b.CreateFDiv(one, b.CreateUnaryIntrinsic(Intrinsic::sqrt, call.getArgOperand(0)));
  if (result)
    put(call, flushes ? flush(result) : result);
  return result;
}

/// Denormal numbers count as 0 where a name says `ftz`.
Value *Replacer::flush(Value *number) {
  Value *size = b.CreateUnaryIntrinsic(Intrinsic::fabs, number);
  Value *isSmall = b.CreateFCmpOLT(size, ConstantFP::get(number->getType(), 0x1p-126));
  return b.CreateSelect(
      isSmall, b.CreateBinaryIntrinsic(Intrinsic::copysign, ConstantFP::get(number->getType(), 0), number), number);
}

/// Copies from global to shared memory that arrive later. Their two sites are filled in once objects are known.
bool Replacer::replaceAsync(CallInst &call, StringRef name) {
  if (name == "cp.async.commit.group") {
    caller.call(Hook::CommitCopies, b.getVoidTy(), {});
  } else if (name == "cp.async.wait.group") {
    caller.call(Hook::WaitForCopies, b.getVoidTy(), {call.getArgOperand(0)});
  } else if (name == "cp.async.wait.all") {
    caller.call(Hook::WaitForCopies, b.getVoidTy(), {b.getInt32(~0u)});
  } else {
    // With an s behind, an operand says how many bytes come from memory; the rest is zero.
    bool isPart = name.consume_back(".s");
    if (!name.consume_front("cp.async.ca.shared.global.") && !name.consume_front("cp.async.cg.shared.global."))
      return false;
    uint32_t bytes = 0;
    if (name.getAsInteger(10, bytes))
      return false;
    Value *flatTo = b.CreateAddrSpaceCast(call.getArgOperand(0), b.getPtrTy());
    Value *flatFrom = b.CreateAddrSpaceCast(call.getArgOperand(1), b.getPtrTy());
    Value *filled = isPart ? call.getArgOperand(2) : b.getInt32(bytes);
    Value *none = ConstantPointerNull::get(b.getPtrTy());
    CallInst *copy =
        caller.call(Hook::CopyAsync, b.getVoidTy(), {flatTo, flatFrom, b.getInt32(bytes), filled, none, none});
    accesses.push_back({copy, call.getArgOperand(0), nullptr, emulation::accessStores, bytes, 4});
    accesses.push_back({copy, call.getArgOperand(1), nullptr, 0, bytes, 5});
  }
  put(call, nullptr);
  return true;
}

/// Words in the memory of the thread. Truth values are whole words, addresses two.
Value *Replacer::makeWords(ArrayRef<Value *> operands) {
  SmallVector<Value *> words;
  for (Value *operand : operands) {
    if (operand->getType()->isPointerTy())
      words.push_back(b.CreatePtrToInt(b.CreateAddrSpaceCast(operand, b.getPtrTy()), b.getInt64Ty()));
    else if (operand->getType()->isIntegerTy(1))
      words.push_back(b.CreateZExt(operand, b.getInt32Ty()));
    else
      words.push_back(b.CreateBitCast(operand, b.getInt32Ty()));
  }
  // In the entry block, so that a loop does not take memory in every round.
  IRBuilder<>::InsertPointGuard guard(b);
  BasicBlock::iterator here = b.GetInsertPoint();
  BasicBlock *block = b.GetInsertBlock();
  b.SetInsertPoint(&*kernel.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
  Value *memory = b.CreateAlloca(ArrayType::get(b.getInt32Ty(), std::max<size_t>(operands.size(), 2)));
  cast<AllocaInst>(memory)->setAlignment(Align(8));
  b.SetInsertPoint(block, here);
  for (auto [i, word] : enumerate(words))
    b.CreateAlignedStore(word, b.CreateConstGEP1_32(b.getInt32Ty(), memory, unsigned(i)), Align(4));
  return memory;
}

/// A value of the type that the intrinsic has: a word, or a struct of them.
Value *Replacer::readWords(Value *words, Type *type) {
  auto read = [&](unsigned i, Type *element) -> Value * {
    Value *word = b.CreateAlignedLoad(b.getInt32Ty(), b.CreateConstGEP1_32(b.getInt32Ty(), words, i), Align(4));
    return element->isIntegerTy(1) ? b.CreateTrunc(word, element) : b.CreateBitCast(word, element);
  };
  auto *structure = dyn_cast<StructType>(type);
  if (!structure)
    return read(0, type);
  Value *value = PoisonValue::get(type);
  for (auto [i, element] : enumerate(structure->elements()))
    value = b.CreateInsertValue(value, read(unsigned(i), element), unsigned(i));
  return value;
}

/// Words in, words out; ldmatrix, which loads, has its site filled in later as loads have.
void Replacer::replaceWarp(CallInst &call, WarpKind kind, Value *mask, ArrayRef<Value *> operands) {
  bool loads = kind >= WarpKind::LoadMatrix1;
  Value *in = makeWords(operands), *out = makeWords({b.getInt32(0), b.getInt32(0), b.getInt32(0), b.getInt32(0)});
  Constant *site = loads ? cast<Constant>(ConstantPointerNull::get(b.getPtrTy()))
                         : caller.makeSite(call, 0, 0, 1, emulation::unknownObject);
  CallInst *meeting = caller.call(Hook::MeetWarp, b.getVoidTy(), {b.getInt32(uint32_t(kind)), mask, in, out, site});
  if (loads)
    accesses.push_back({meeting, operands[0], nullptr, 0, 16, 4});
  put(call, call.getType()->isVoidTy() ? nullptr : readWords(out, call.getType()));
}

/// libdevice: mostly the C library under other names.
bool Replacer::replaceLibdevice(CallInst &call, StringRef name) {
  name.consume_front("fast_");
  Type *type = call.arg_empty() ? call.getType() : call.getArgOperand(0)->getType();
  Value *x = call.arg_empty() ? nullptr : call.getArgOperand(0);
  if (isOfLibm(name, type->isFloatTy())) {
    put(call, callLibrary(name, call));
  } else if (name == "rsqrt" || name == "rsqrtf") {
    put(call, b.CreateFDiv(ConstantFP::get(type, 1), b.CreateUnaryIntrinsic(Intrinsic::sqrt, x)));
  } else if (name == "powi" || name == "powif") {
    Value *power = b.CreateSIToFP(call.getArgOperand(1), type);
    FunctionCallee pow = kernel.getParent()->getOrInsertFunction(type->isFloatTy() ? "powf" : "pow", type, type, type);
    put(call, b.CreateCall(pow, {x, power}));
  } else if (name == "abs" || name == "llabs") {
    put(call, b.CreateBinaryIntrinsic(Intrinsic::abs, x, b.getFalse()));
  } else if (name == "isnanf" || name == "isnand") {
    put(call, b.CreateZExt(b.CreateFCmpUNO(x, x), call.getType()));
  } else if (name == "isinff" || name == "isinfd") {
    Value *size = b.CreateUnaryIntrinsic(Intrinsic::fabs, x);
    put(call, b.CreateZExt(b.CreateFCmpOEQ(size, ConstantFP::getInfinity(type)), call.getType()));
  } else if (name == "finitef" || name == "isfinited") {
    Value *size = b.CreateUnaryIntrinsic(Intrinsic::fabs, x);
    put(call, b.CreateZExt(b.CreateFCmpOLT(size, ConstantFP::getInfinity(type)), call.getType()));
  } else {
    return false;
  }
  return true;
}

// The list is made first: replacing adds calls of its own.
Error cleave::codegen::replaceCalls(Function &kernel, HookCaller &caller, SmallVectorImpl<RangeAccess> &accesses) {
  Replacer replacer(kernel, caller, accesses);
  SmallVector<CallInst *> calls;
  for (Instruction &instruction : instructions(kernel)) {
    if (auto *call = dyn_cast<CallInst>(&instruction))
      calls.push_back(call);
    else if (isa<CallBase>(instruction))
      return makeError("kernel {0}: the emulated device does not know '{1}'", quote(kernel.getName()),
                       StringRef(instruction.getOpcodeName()));
  }
  for (CallInst *call : calls)
    if (Error error = replacer.replace(*call))
      return error;
  caller.b.SetCurrentDebugLocation(DebugLoc());
  return Error::success();
}

//===----------------------------------------------------------------------===//
// bf16
//===----------------------------------------------------------------------===//

// What is only moved (loads, selects, phis) stays: host code does that with the bits.
Error cleave::codegen::expandBf16(Function &kernel) {
  IRBuilder<> b(kernel.getContext());
  for (Instruction &instruction : make_early_inc_range(instructions(kernel))) {
    Type *type = instruction.getType();
    if (!type->isFPOrFPVectorTy() || !type->getScalarType()->isBFloatTy())
      continue;
    Type *wide = type->getWithNewType(b.getFloatTy());
    b.SetInsertPoint(&instruction);
    auto widen = [&](unsigned i) { return b.CreateFPExt(instruction.getOperand(i), wide); };
    Value *result = nullptr;
    if (auto *conversion = dyn_cast<CastInst>(&instruction); conversion && !isa<BitCastInst>(conversion)) {
      Value *operand = conversion->getOperand(0);
      result = operand->getType() == wide ? operand : b.CreateCast(conversion->getOpcode(), operand, wide);
    } else if (isa<BinaryOperator>(instruction)) {
      result = b.CreateBinOp(cast<BinaryOperator>(instruction).getOpcode(), widen(0), widen(1));
    } else if (auto *call = dyn_cast<IntrinsicInst>(&instruction)) {
      SmallVector<Value *> operands;
      for (unsigned i = 0; i < call->arg_size(); ++i)
        operands.push_back(call->getArgOperand(i)->getType() == type ? widen(i) : call->getArgOperand(i));
      result = b.CreateIntrinsic(wide, call->getIntrinsicID(), operands);
    } else if (isa<AtomicRMWInst>(instruction)) {
      return makeError("kernel {0}: the emulated device does not know atomics of bf16", quote(kernel.getName()));
    }
    if (!result)
      continue; // moved, not computed
    instruction.replaceAllUsesWith(roundToBf16(b, result, type));
    instruction.eraseFromParent();
  }
  return Error::success();
}
