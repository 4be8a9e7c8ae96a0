//===- EmulateDevice.cpp - a device's kernels for this machine ------------===//
//
//   kernel, as MLIR translates it      ──device functions inlined, registers out of structs (sroa)──▶
//   calls of NVVM and libdevice        ──DeviceCalls.cpp──▶ calls of the emulator and of the C library
//   loads and stores                   ──a call before each, with its site: bytes, alignment, object──▶
//   shared variables                   ──▶ offsets in the memory of the block
//   name(p, q, n)                      ──▶ entry(void **parameters), as cuLaunchKernel passes them
//
// What an access belongs to is found by following its address to an argument, a shared variable, a variable of the module or
// a local one; what leads to none is looked up at run time. All that promises independence (noalias, readonly, metadata) is
// taken away: here one function stands for all threads, which do write one another's memory.
//
//===----------------------------------------------------------------------===//
#include "cleave/EmulatedKernels/EmulateDevice.h"

#include "DeviceCalls.h"
#include "cleave/Codegen/Codegen.h"
#include "cleave/Codegen/CompileObject.h"
#include "cleave/Emulation/Module.h"
#include "cleave/Support/Status.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;
using namespace cleave;
using namespace cleave::codegen;
using emulation::ObjectKind;

namespace {
/// What cleave::emulation::Object says, while it is gathered.
struct KernelObject {
  std::string name;
  ObjectKind kind;
  Value *value;
  uint32_t argument = 0;
  uint64_t offset = 0, bytes = 0;
  uint32_t granule = 16;
  bool isWritten = false;
};

/// A load or store, wherever it comes from.
struct Access {
  Instruction *before;
  Value *pointer;
  Value *length; // null: `bytes`
  uint32_t flags, bytes, alignment, object;
  int site; // operand of `before` that takes the site; -1: a call is made
};

/// One kernel on its way.
class KernelEmulation {
public:
  KernelEmulation(Function &kernel, HookCaller &caller) : kernel(kernel), caller(caller), b(caller.b) {}
  /// The constants of its cleave::emulation::Kernel.
  Expected<Constant *> run();

private:
  const DataLayout &getLayout() const { return kernel.getParent()->getDataLayout(); }
  uint32_t getObject(Value *pointer);
  uint32_t addGlobal(GlobalVariable &variable);
  void noteAccess(Instruction &instruction);
  void noteRanges(ArrayRef<RangeAccess> ranges);
  void weighObjects();
  void tellAccesses();
  void placeShared();
  Constant *describeObjects();
  Constant *describeParameters();
  uint32_t getMaxThreads() const;
  Function *makeEntry();

  Function &kernel;
  HookCaller &caller;
  IRBuilder<> &b;
  SmallVector<KernelObject> objects;
  SmallVector<Access> accesses;
  uint64_t sharedBytes = 0;
};
} // namespace

/// Address space 3 of NVVM.
static bool isShared(const Value *value) {
  return isa<GlobalVariable>(value) && cast<GlobalVariable>(value)->getAddressSpace() == 3;
}

/// Shared variables get their places in the order in which the kernel comes to them.
uint32_t KernelEmulation::addGlobal(GlobalVariable &variable) {
  uint64_t bytes = getLayout().getTypeAllocSize(variable.getValueType());
  KernelObject object{((isShared(&variable) ? "shared variable \"" : "variable \"") + variable.getName() + "\"").str(),
                      ObjectKind::Variable, &variable};
  object.bytes = bytes;
  if (isShared(&variable) && (bytes == 0 || variable.isDeclaration())) {
    object.kind = ObjectKind::DynamicShared;
    object.name = "the dynamic shared memory";
  } else if (isShared(&variable)) {
    object.kind = ObjectKind::Shared;
    object.offset = alignTo(sharedBytes, 128);
    sharedBytes = object.offset + bytes;
  }
  objects.push_back(std::move(object));
  return uint32_t(objects.size() - 1);
}

/// The number of what `pointer` leads to.
uint32_t KernelEmulation::getObject(Value *pointer) {
  Value *base = getUnderlyingObject(pointer, 0);
  auto known = llvm::find_if(objects, [&](const KernelObject &object) { return object.value == base; });
  if (known != objects.end())
    return uint32_t(known - objects.begin());
  if (auto *variable = dyn_cast<GlobalVariable>(base))
    return addGlobal(*variable);
  auto *local = dyn_cast<AllocaInst>(base);
  // What has another size in each call cannot be held to one.
  if (!local || !local->isStaticAlloca())
    return emulation::unknownObject;
  objects.push_back({"a local variable", ObjectKind::Local, base});
  objects.back().bytes = local->getAllocationSize(getLayout())->getFixedValue();
  return uint32_t(objects.size() - 1);
}

/// With the alignment that the instruction claims: that is what the device would fault for.
void KernelEmulation::noteAccess(Instruction &instruction) {
  auto add = [&](Value *pointer, Type *type, Align alignment, uint32_t flags) {
    uint32_t bytes = uint32_t(getLayout().getTypeStoreSize(type));
    accesses.push_back(
        {&instruction, pointer, nullptr, flags, bytes, uint32_t(alignment.value()), getObject(pointer), -1});
  };
  constexpr uint32_t atomic = emulation::accessStores | emulation::accessIsAtomic;
  if (auto *load = dyn_cast<LoadInst>(&instruction))
    add(load->getPointerOperand(), load->getType(), load->getAlign(), 0);
  else if (auto *store = dyn_cast<StoreInst>(&instruction))
    add(store->getPointerOperand(), store->getValueOperand()->getType(), store->getAlign(), emulation::accessStores);
  else if (auto *update = dyn_cast<AtomicRMWInst>(&instruction))
    add(update->getPointerOperand(), update->getType(), update->getAlign(), atomic);
  else if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(&instruction))
    add(exchange->getPointerOperand(), exchange->getNewValOperand()->getType(), exchange->getAlign(), atomic);
}

/// What calls load and store. cp.async and ldmatrix need whole units; what memcpy moves may lie anywhere.
void KernelEmulation::noteRanges(ArrayRef<RangeAccess> ranges) {
  for (const RangeAccess &range : ranges) {
    uint32_t alignment = range.bytes ? 1 : range.fixedBytes;
    accesses.push_back({range.before, range.pointer, range.bytes, range.flags, range.fixedBytes, alignment,
                        getObject(range.pointer), range.bytes ? -1 : int(range.site)});
  }
}

/// Which objects are written, and what divides all that is done to them. Where an access leads to no object it may be to any.
void KernelEmulation::weighObjects() {
  auto weigh = [](KernelObject &object, const Access &access) {
    uint32_t whole = access.bytes & -access.bytes; // the largest power of two in it; 0: bytes known at run time
    object.granule = access.length ? 1 : std::min({object.granule, whole, access.alignment});
    object.isWritten |= (access.flags & emulation::accessStores) != 0;
  };
  for (const Access &access : accesses) {
    if (access.object != emulation::unknownObject) {
      weigh(objects[access.object], access);
      continue;
    }
    // It may be any of them: all have its granule, and are written if it writes.
    for (KernelObject &object : objects)
      weigh(object, access);
  }
  for (KernelObject &object : objects)
    object.isWritten &= object.kind != ObjectKind::Local;
}

/// A call before each access, so that a finding comes before a fault of the host.
void KernelEmulation::tellAccesses() {
  for (const Access &access : accesses) {
    Constant *site = caller.makeSite(*access.before, access.flags, access.bytes, access.alignment, access.object);
    // The runtime itself tells these accesses, when they happen.
    if (access.site >= 0) {
      cast<CallInst>(access.before)->setArgOperand(unsigned(access.site), site);
      continue;
    }
    b.SetInsertPoint(access.before);
    // An instruction, even of a variable's own address: that is replaced where instructions use it (`placeShared`).
    Value *at = access.pointer;
    if (at->getType() != b.getPtrTy())
      at = b.Insert(CastInst::Create(Instruction::AddrSpaceCast, at, b.getPtrTy()));
    Value *base = ConstantPointerNull::get(b.getPtrTy());
    if (access.object != emulation::unknownObject && objects[access.object].kind == ObjectKind::Local)
      base = b.CreateAddrSpaceCast(objects[access.object].value, b.getPtrTy());
    if (access.length)
      caller.call(Hook::AccessRange, b.getVoidTy(), {at, base, b.CreateZExt(access.length, b.getInt64Ty()), site});
    else
      caller.call(Hook::Access, b.getVoidTy(), {at, base, site});
  }
}

/// Every kernel has its shared variables from the start of its block's memory; dynamic memory begins behind them.
void KernelEmulation::placeShared() {
  sharedBytes = alignTo(sharedBytes, 128);
  for (const KernelObject &object : objects) {
    bool isDynamic = object.kind == ObjectKind::DynamicShared;
    if (!isDynamic && object.kind != ObjectKind::Shared)
      continue;
    b.SetInsertPoint(&*kernel.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
    Value *base = caller.call(Hook::GetShared, b.getPtrTy(), {b.getInt64(isDynamic ? sharedBytes : object.offset)});
    base = b.CreateAddrSpaceCast(base, object.value->getType());
    object.value->replaceUsesWithIf(base, [&](Use &use) {
      auto *user = dyn_cast<Instruction>(use.getUser());
      return user && user->getFunction() == &kernel;
    });
  }
}

/// An array of cleave::emulation::Object, with the numbers that sites name.
Constant *KernelEmulation::describeObjects() {
  SmallVector<Constant *> rows;
  Constant *none = ConstantPointerNull::get(b.getPtrTy());
  for (const KernelObject &object : objects) {
    Constant *address = none;
    if (object.kind == ObjectKind::Variable)
      address = ConstantExpr::getAddrSpaceCast(cast<Constant>(object.value), b.getPtrTy());
    rows.push_back(
        ConstantStruct::getAnon({caller.makeText(object.name), b.getInt32(uint32_t(object.kind)),
                                 b.getInt32(object.argument), b.getInt64(object.offset), address,
                                 b.getInt64(object.bytes), b.getInt32(object.granule), b.getInt32(object.isWritten)}));
  }
  return rows.empty() ? none
                      : caller.makeConstant(ConstantArray::get(ArrayType::get(rows[0]->getType(), rows.size()), rows));
}

/// An array of cleave::emulation::Parameter: what a driver must know to check a launch and to order it.
Constant *KernelEmulation::describeParameters() {
  SmallVector<Constant *> rows;
  for (Argument &argument : kernel.args()) {
    uint32_t flags = 0;
    if (argument.getType()->isPointerTy() && !argument.hasByValAttr())
      flags |= emulation::parameterIsPointer | (argument.hasNoAliasAttr() ? emulation::parameterIsAlone : 0) |
               (argument.hasAttribute(Attribute::ReadNone) ? emulation::parameterIsEmpty : 0);
    for (const KernelObject &object : objects)
      if (object.value == &argument && object.isWritten)
        flags |= emulation::parameterIsWritten;
    uint64_t bytes = argument.hasByValAttr() ? getLayout().getTypeAllocSize(argument.getParamByValType())
                                             : getLayout().getTypeStoreSize(argument.getType());
    rows.push_back(ConstantStruct::getAnon(
        {b.getInt32(uint32_t(bytes)), b.getInt32(flags), b.getInt64(argument.getDereferenceableBytes())}));
  }
  if (rows.empty())
    return ConstantPointerNull::get(b.getPtrTy());
  return caller.makeConstant(ConstantArray::get(ArrayType::get(rows[0]->getType(), rows.size()), rows));
}

/// `nvvm.maxntid` is "x,y,z".
uint32_t KernelEmulation::getMaxThreads() const {
  StringRef text = kernel.getFnAttribute("nvvm.maxntid").getValueAsString();
  uint32_t product = text.empty() ? 0 : 1, size = 0;
  for (StringRef part : llvm::split(text, ','))
    product *= part.trim().getAsInteger(10, size) ? 0 : size;
  return product;
}

/// `void entry(void **parameters)`.
Function *KernelEmulation::makeEntry() {
  auto *type = FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false);
  auto *entry = Function::Create(type, GlobalValue::InternalLinkage, "entry." + kernel.getName(), *kernel.getParent());
  b.SetInsertPoint(BasicBlock::Create(b.getContext(), "", entry));
  SmallVector<Value *> arguments;
  for (Argument &argument : kernel.args()) {
    Value *place =
        b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_32(b.getPtrTy(), entry->getArg(0), argument.getArgNo()));
    arguments.push_back(argument.hasByValAttr() ? place : b.CreateAlignedLoad(argument.getType(), place, Align(1)));
  }
  b.CreateCall(&kernel, arguments);
  b.CreateRetVoid();
  return entry;
}

/// What was promised of one thread is not so for a function that is run for all of them in turn.
static void dropPromises(Function &kernel) {
  kernel.setCallingConv(CallingConv::C);
  kernel.setLinkage(GlobalValue::InternalLinkage);
  kernel.setAttributes(AttributeList());
}

/// The order matters: accesses are noted before calls of our own load and store, attributes are read before they go.
Expected<Constant *> KernelEmulation::run() {
  caller.beginKernel();
  std::string name = kernel.getName().str();
  for (Argument &argument : kernel.args()) {
    if (!argument.getType()->isPointerTy() || argument.hasByValAttr())
      continue;
    objects.push_back({"argument " + std::to_string(argument.getArgNo()), ObjectKind::Argument, &argument});
    objects.back().argument = argument.getArgNo();
    objects.back().bytes = argument.getDereferenceableBytes();
  }
  // Before anything is added: calls of the emulator load from its table, which is no access of the kernel.
  SmallVector<Instruction *> touching;
  for (Instruction &instruction : instructions(kernel)) {
    instruction.dropUnknownNonDebugMetadata();
    if (isa<LoadInst, StoreInst, AtomicRMWInst, AtomicCmpXchgInst>(instruction))
      touching.push_back(&instruction);
  }
  SmallVector<RangeAccess> ranges;
  if (Error error = replaceCalls(kernel, caller, ranges))
    return std::move(error);
  for (Instruction *instruction : touching)
    noteAccess(*instruction);
  noteRanges(ranges);
  weighObjects();
  tellAccesses();
  Constant *parameters = describeParameters(), *table = describeObjects();
  placeShared();
  if (Error error = expandBf16(kernel))
    return std::move(error);
  Function *entry = makeEntry();
  Constant *row = ConstantStruct::getAnon(
      {caller.makeText(name), entry, parameters, table, b.getInt32(uint32_t(kernel.arg_size())),
       b.getInt32(uint32_t(objects.size())), b.getInt32(uint32_t(sharedBytes)), b.getInt32(getMaxThreads())});
  dropPromises(kernel);
  return row;
}

/// Functions of the device become part of the kernels that call them; structs of registers (memref descriptors) fall apart, so
/// that addresses can be followed.
static void simplify(Module &device, TargetMachine &machine) {
  for (Function &function : device)
    if (!function.isDeclaration() && function.getCallingConv() != CallingConv::PTX_Kernel) {
      function.removeFnAttr(Attribute::NoInline);
      function.removeFnAttr(Attribute::OptimizeNone);
      function.addFnAttr(Attribute::AlwaysInline);
      function.setLinkage(GlobalValue::InternalLinkage);
    }
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  ModulePassManager passes;
  cantFail(builder.parsePassPipeline(passes, "always-inline,function(sroa,instsimplify,early-cse),globaldce"));
  passes.run(device, modules);
}

/// Shared variables are used by instructions alone from here on, each by its own address.
static void freeConstantsOfShared(Module &device) {
  SmallVector<Constant *> shared;
  for (GlobalVariable &variable : device.globals())
    if (isShared(&variable))
      shared.push_back(&variable);
  convertUsersOfConstantsToInstructions(shared);
}

/// The symbol by which the module is found, and what it leads to.
static void exportModule(Module &device, HookCaller &caller, ArrayRef<Constant *> kernels,
                         ArrayRef<Constant *> variables) {
  IRBuilder<> &b = caller.b;
  auto makeArray = [&](ArrayRef<Constant *> rows) -> Constant * {
    if (rows.empty())
      return ConstantPointerNull::get(b.getPtrTy());
    return caller.makeConstant(ConstantArray::get(ArrayType::get(rows[0]->getType(), rows.size()), rows));
  };
  Constant *module = ConstantStruct::getAnon(
      {b.getInt32(emulation::moduleVersion), b.getInt32(uint32_t(kernels.size())),
       b.getInt32(uint32_t(variables.size())), makeArray(kernels), makeArray(variables), caller.getHooks()});
  new GlobalVariable(device, module->getType(), true, GlobalValue::ExternalLinkage, module, emulation::moduleSymbol);
}

/// Variables of the module, but not those of blocks, which go away.
static SmallVector<Constant *> takeVariables(Module &device, HookCaller &caller) {
  SmallVector<Constant *> rows;
  for (GlobalVariable &variable : make_early_inc_range(device.globals())) {
    if (isShared(&variable)) {
      variable.eraseFromParent();
    } else if (variable.hasExternalLinkage()) {
      IRBuilder<> &b = caller.b;
      uint64_t bytes = device.getDataLayout().getTypeAllocSize(variable.getValueType());
      rows.push_back(
          ConstantStruct::getAnon({caller.makeText(variable.getName()),
                                   ConstantExpr::getAddrSpaceCast(&variable, b.getPtrTy()), b.getInt64(bytes)}));
      variable.setLinkage(GlobalValue::InternalLinkage);
    }
  }
  return rows;
}

Error cleave::codegen::emulate(Module &device, const HostTarget &host) {
  TargetMachine &machine = host.getMachine();
  device.setDataLayout(machine.createDataLayout());
  device.setTargetTriple(machine.getTargetTriple());
  simplify(device, machine);
  freeConstantsOfShared(device);
  SmallVector<Function *> kernels;
  for (Function &function : device)
    if (function.getCallingConv() == CallingConv::PTX_Kernel && !function.isDeclaration())
      kernels.push_back(&function);
  if (kernels.empty())
    return makeError("the device's module has no kernels");
  HookCaller caller(device);
  SmallVector<Constant *> rows;
  for (Function *kernel : kernels) {
    Expected<Constant *> row = KernelEmulation(*kernel, caller).run();
    if (!row)
      return row.takeError();
    rows.push_back(*row);
  }
  // Kernels name shared variables no more, so these can go.
  SmallVector<Constant *> variables = takeVariables(device, caller);
  exportModule(device, caller, rows, variables);
  for (Function &function : make_early_inc_range(device))
    if (function.isDeclaration() && function.use_empty())
      function.eraseFromParent();
  StripDebugInfo(device);
  std::string broken;
  raw_string_ostream os(broken);
  return verifyModule(device, &os) ? makeError("emulated kernels are not valid code: {0}", broken) : Error::success();
}

Expected<std::string> cleave::codegen::makeEmulatedLibrary(Module &device, const HostTarget &host) {
  if (Error error = emulate(device, host))
    return std::move(error);
  // Most of the time is that of hooks, and kernels run a few times only: code that is made quickly is the quicker one.
  TargetMachine &machine = host.getMachine();
  CodeGenOptLevel before = machine.getOptLevel();
  setTarget(device, machine);
  machine.setOptLevel(CodeGenOptLevel::None);
  std::optional<std::string> object = generateObject(device, machine);
  machine.setOptLevel(before);
  return object ? linkObject(*object) : makeError("this machine makes no objects");
}
