//===- Host.cpp - this machine as a device --------------------------------===//
//
// Code is a shared object: it gets a file in memory, and the system's loader does the rest. Memory comes in pages from the
// system, which are zeros and cost nothing until they are touched.
//
// What the processor can do is what Linux says in /proc/cpuinfo: only what the system has switched on counts. Compilers name
// some features otherwise; points and underscores are left out of all names.
//
//===----------------------------------------------------------------------===//
#include "cleave/Program/Words.h"
#include "cleave/Runtime/Device.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <set>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace cleave::runtime;
namespace program = cleave::program;
using cleave::program::concat;
using cleave::program::makeError;
using cleave::program::quote;
using cleave::program::Result;

//===----------------------------------------------------------------------===//
// Features
//===----------------------------------------------------------------------===//

/// Compilers' names, and those of Linux.
static constexpr struct {
  const char *name, *onLinux;
} kOtherNames[] = {{"64bit", "lm"},     {"bmi", "bmi1"},         {"lzcnt", "abm"},
                   {"sse3", "pni"},     {"pclmul", "pclmulqdq"}, {"prfchw", "3dnowprefetch"},
                   {"rdrnd", "rdrand"}, {"sahf", "lahflm"},      {"fxsr", "fxsr"},
                   {"crc32", "sse42"},  {"neon", "asimd"},       {"dotprod", "asimddp"},
                   {"fullfp16", "fphp"}};

/// Linux's name of a feature, without the marks that names are divided by.
static std::string simplify(std::string_view name) {
  std::string text;
  for (char c : name)
    if (c != '_' && c != '.' && c != '-')
      text += c;
  for (const auto &other : kOtherNames)
    if (text == other.name)
      return other.onLinux;
  return text;
}

/// The words of the first processor's `flags` (x86) or `Features` (arm).
static std::set<std::string> readFeatures() {
  std::set<std::string> features;
  FILE *file = std::fopen("/proc/cpuinfo", "re");
  if (!file)
    return features;
  char *line = nullptr;
  size_t room = 0;
  while (features.empty() && getline(&line, &room, file) >= 0) {
    if (std::strncmp(line, "flags", 5) != 0 && std::strncmp(line, "Features", 8) != 0)
      continue;
    char *rest = nullptr, *colon = std::strchr(line, ':');
    for (char *word = colon ? strtok_r(colon + 1, " \t\n", &rest) : nullptr; word;
         word = strtok_r(nullptr, " \t\n", &rest))
      features.insert(simplify(word));
  }
  std::free(line);
  std::fclose(file);
  return features;
}

/// Linux lets a process have the memory of tiles (AMX) where it asks, once; all of its threads have it then. Without having
/// asked, the first such instruction ends the process.
static bool askForTiles() {
#if defined(__x86_64__) && defined(SYS_arch_prctl)
  constexpr long askForFeature = 0x1023, tileData = 18;
  return syscall(SYS_arch_prctl, askForFeature, tileData) == 0;
#else
  return false;
#endif
}

#if defined(__x86_64__)
static constexpr const char *kArchitecture = "x86-64";
#elif defined(__aarch64__)
static constexpr const char *kArchitecture = "aarch64";
#else
static constexpr const char *kArchitecture = "unknown";
#endif

//===----------------------------------------------------------------------===//
// The device
//===----------------------------------------------------------------------===//

namespace {

class Host final : public Device {
public:
  Host() : features(readFeatures()) {}
  ~Host() override;

  std::optional<std::string> findMissing(const program::Target &target) const override;
  Result<char *> allocate(uint64_t bytes, uint64_t alignment, program::Memory memory, bool isMet) override;
  uint64_t getFreeBytes() const override;
  Result<uint32_t> load(const program::Object &object, const std::string &name) override;
  Result<KernelEntry> find(uint32_t code, const std::string &entry) override;

  void launch(const BoundLaunch &launch, uint32_t) override {
    reinterpret_cast<void (*)(void **)>(launch.entry)(launch.arguments);
  }
  void copy(const BoxCopy &box, const char *source, char *target, uint32_t) override { copyBox(box, source, target); }

private:
  std::set<std::string> features;
  /// What was loaded, and the file in memory that it came from.
  struct Code {
    void *handle;
    int file;
  };
  std::vector<Code> objects;
  std::vector<std::pair<void *, uint64_t>> blocks;
};

} // namespace

Host::~Host() {
  for (Code code : objects) {
    dlclose(code.handle);
    close(code.file);
  }
  for (auto [address, bytes] : blocks)
    munmap(address, bytes);
}

/// Kind of device, architecture, then features, all that are missing at once.
std::optional<std::string> Host::findMissing(const program::Target &target) const {
  if (target.device != program::Device::Host)
    return concat("it is for a device of kind ", program::getWord(target.device),
                  ", of which there is none; compile it for the host");
  if (target.architecture != kArchitecture)
    return concat("it is for ", quote(target.architecture), ", this machine is ", kArchitecture);
  if (features.empty() && !target.features.empty())
    return "what this processor can do is not known: /proc/cpuinfo cannot be read";
  std::string missing;
  for (const std::string &feature : target.features)
    if (!features.count(simplify(feature)) || (feature == "amx-tile" && !askForTiles()))
      missing += (missing.empty() ? "" : ", ") + quote(feature);
  return missing.empty() ? std::nullopt : std::optional(concat("this processor has no ", missing));
}

/// The number behind `key` in a file of the system, or at its beginning where there is no key; nothing if there is none.
static std::optional<uint64_t> readNumber(const char *path, const char *key) {
  std::optional<uint64_t> number;
  FILE *file = std::fopen(path, "re");
  if (!file)
    return number;
  char line[256];
  while (!number && std::fgets(line, sizeof(line), file))
    if (unsigned long long value;
        std::strncmp(line, key, std::strlen(key)) == 0 && std::sscanf(line + std::strlen(key), "%llu", &value) == 1)
      number = value;
  std::fclose(file);
  return number;
}

/// What Linux says is available, and what is left of a container's limit.
uint64_t Host::getFreeBytes() const {
  std::optional<uint64_t> available = readNumber("/proc/meminfo", "MemAvailable:");
  uint64_t free = available ? *available * 1024 : UINT64_MAX;
  std::optional<uint64_t> limit = readNumber("/sys/fs/cgroup/memory.max", "");
  std::optional<uint64_t> used = readNumber("/sys/fs/cgroup/memory.current", "");
  // Pages of files count as used, and are given back.
  std::optional<uint64_t> files = readNumber("/sys/fs/cgroup/memory.stat", "inactive_file");
  if (limit && used)
    free = std::min(free, *limit - std::min(*limit, *used - std::min(*used, files.value_or(0))));
  return free;
}

/// Of x86-64, and of most others where pages are small.
static constexpr uint64_t kLargePage = uint64_t{2} << 20;

/// Pages are aligned to more than most ask for; for the rest some are left out in front. Large pages, where there are any: weights and
/// arenas are walked from end to end, and would wait for addresses of small ones.
Result<char *> Host::allocate(uint64_t bytes, uint64_t alignment, program::Memory, bool) {
  uint64_t page = uint64_t(sysconf(_SC_PAGESIZE)), more = alignment > page ? alignment : 0;
  uint64_t size = std::max<uint64_t>(bytes, 1) + more;
  void *address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    return makeError("cannot get ", bytes, " bytes of memory: ", std::strerror(errno));
  if (size >= kLargePage)
    madvise(address, size, MADV_HUGEPAGE); // an annotation
  blocks.push_back({address, size});
  uintptr_t start = reinterpret_cast<uintptr_t>(address);
  return reinterpret_cast<char *>((start + alignment - 1) / alignment * alignment);
}

/// Writes the code into a file in memory. The file stays open: the loader knows a library by its path, and would take code
/// with the number of a closed file for the code that it has.
Result<uint32_t> Host::load(const program::Object &object, const std::string &name) {
  if (object.format != program::Format::SharedObject)
    return makeError("a ", program::getWord(object.format), " is not code for this machine");
  int file = memfd_create("cleave-kernels", MFD_CLOEXEC);
  if (file < 0)
    return makeError("cannot make a file in memory: ", std::strerror(errno));
  std::string_view rest = object.code;
  while (!rest.empty()) {
    ssize_t written = ::write(file, rest.data(), rest.size());
    if (written <= 0)
      break;
    rest.remove_prefix(size_t(written));
  }
  void *loaded = rest.empty() ? dlopen(concat("/proc/self/fd/", file).c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  const char *why = rest.empty() ? dlerror() : std::strerror(errno);
  if (!loaded) {
    close(file);
    return makeError("cannot load the code of ", quote(name), ": ", why ? why : "no reason given");
  }
  objects.push_back({loaded, file});
  return uint32_t(objects.size() - 1);
}

Result<KernelEntry> Host::find(uint32_t code, const std::string &entry) {
  if (void *address = dlsym(objects[code].handle, entry.c_str()))
    return address;
  return makeError("the code has no ", quote(entry));
}

std::unique_ptr<Device> cleave::runtime::makeHost() { return std::make_unique<Host>(); }
