//===- Target.cpp - the processor that kernels are for --------------------===//
//
// Of this machine all features are asked for one by one: a virtual one may lack some of its processor's.
//
//===----------------------------------------------------------------------===//
#include "cleave/Codegen/Codegen.h"

#include "cleave/Support/Status.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"

using namespace cleave::codegen;

Target::Target() = default;
Target::~Target() = default;

/// `+avx2,-amx-tile,..`, in one order everywhere.
static std::string getFeatures() {
  llvm::SubtargetFeatures features;
  for (const auto &[name, isThere] : llvm::sys::getHostCPUFeatures())
    features.AddFeature(name, isThere);
  std::vector<std::string> sorted = features.getFeatures();
  llvm::sort(sorted); // the map's order is not the same everywhere
  return llvm::SubtargetFeatures(llvm::join(sorted, ",")).getString();
}

/// Of two ways to multiply bf16 the better one is told here, once: tiles where there are any, else pairs.
///
/// Vectors of 64 bytes want AVX-512 with bytes and with masks on shorter vectors, for tails and narrow types.
llvm::Expected<std::unique_ptr<HostTarget>> HostTarget::create(llvm::StringRef isa) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return makeError("{0}", error);
  bool isNative = isa == "native";
  std::string cpu = isNative ? llvm::sys::getHostCPUName().str() : isa.str();
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  std::unique_ptr<llvm::MCSubtargetInfo> known(target->createMCSubtargetInfo(triple, "", ""));
  if (!known->isCPUStringValid(cpu))
    return makeError("no processor is called '{0}'", cpu);
  std::unique_ptr<HostTarget> made(new HostTarget);
  made->machine.reset(target->createTargetMachine(triple, cpu, isNative ? getFeatures() : "", options,
                                                  llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
  const llvm::MCSubtargetInfo &has = *made->machine->getMCSubtargetInfo();
  if (!triple.isX86()) {
    made->fma = true;
    return made;
  }
  made->fma = has.checkFeatures("+fma");
  made->tiles = has.checkFeatures("+avx512bw,+avx512vl,+amx-tile,+amx-bf16");
  // Processors with tiles do half as many products in pairs as in f32.
  made->halves = has.checkFeatures("+avx512bw,+avx512vl,+avx512bf16");
  made->pairProducts = made->halves && !made->tiles;
  made->vectorBytes = has.checkFeatures("+avx512f,+avx512bw,+avx512vl") ? 64 : has.checkFeatures("+avx2") ? 32 : 16;
  return made;
}

std::string HostTarget::getArchitecture() const {
  llvm::StringRef name = machine->getTargetTriple().getArchName();
  return name == "x86_64" ? "x86-64" : name.str();
}

/// Those that code for vectors and numbers can make use of; what else a processor has, kernels do not ask for.
std::vector<std::string> HostTarget::getRequirements(bool usesTiles) const {
  constexpr const char *candidates[] = {
      "sse4.2",     "popcnt",     "avx",        "avx2",        "f16c",       "fma",          "bmi",
      "bmi2",       "lzcnt",      "avxvnni",    "avx512f",     "avx512bw",   "avx512cd",     "avx512dq",
      "avx512vl",   "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vnni", "avx512bitalg", "avx512vpopcntdq",
      "avx512bf16", "avx512fp16", "neon",       "dotprod",     "fullfp16",   "bf16",         "i8mm",
      "sve"};
  const llvm::MCSubtargetInfo &has = *machine->getMCSubtargetInfo();
  llvm::StringMap<bool> known;
  for (const llvm::SubtargetFeatureKV &feature : has.getAllProcessorFeatures())
    known[feature.Key] = has.hasFeature(feature.Value);
  std::vector<std::string> needed;
  for (const char *name : candidates)
    if (known.lookup(name))
      needed.push_back(name);
  if (usesTiles)
    needed.insert(needed.end(), {"amx-bf16", "amx-tile"});
  return needed;
}
