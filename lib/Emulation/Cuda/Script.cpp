//===- Script.cpp - what the environment asks of the emulated device ------===//
//
//   CLEAVE_EMULATION_FAIL=cuLaunchKernel:3=719,ncclAllReduce@1:2=hang
//
// The third launch fails with 719, and the second all-reduce of device 1 never ends. Calls are counted by name and, where a
// device is named, by that device; counting begins anew when the variable changes.
//
//===----------------------------------------------------------------------===//
#include "State.h"

#include <cstdlib>

using namespace cleave::cuda;

/// An empty variable is none.
std::string cleave::cuda::getSetting(const char *name, const char *otherwise) {
  const char *value = std::getenv(name);
  return value && *value ? value : otherwise;
}

/// What is no number is 0.
uint64_t cleave::cuda::getNumber(const char *name, uint64_t otherwise) {
  const char *value = std::getenv(name);
  return value && *value ? std::strtoull(value, nullptr, 10) : otherwise;
}

/// Looked up each time: tests shorten it.
double cleave::cuda::getPatience() {
  return std::strtod(getSetting("CLEAVE_EMULATION_PATIENCE", "2").c_str(), nullptr);
}

namespace {
/// A fault, and how often its call has been seen.
struct Planned {
  std::string name;
  int device = -1; // any
  uint64_t number = 1, seen = 0;
  Fault fault;
};

/// All faults of the variable, with the text that they were read from.
struct Script {
  std::mutex mutex;
  std::string text;
  std::vector<Planned> faults;
};
} // namespace

/// NAME[@DEVICE][:NUMBER]=CODE|hang
static Planned readFault(const std::string &text) {
  Planned planned;
  size_t equals = text.find('='), colon = text.find(':'), at = text.find('@');
  std::string code = equals == std::string::npos ? "" : text.substr(equals + 1);
  planned.fault.hangs = code == "hang";
  planned.fault.code = std::atoi(code.c_str());
  if (colon != std::string::npos)
    planned.number = std::strtoull(text.c_str() + colon + 1, nullptr, 10);
  if (at != std::string::npos)
    planned.device = std::atoi(text.c_str() + at + 1);
  planned.name = text.substr(0, text.find_first_of("@:="));
  return planned;
}

/// Counts begin anew.
static void readScript(Script &script, const std::string &text) {
  script.text = text;
  script.faults.clear();
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find(',', at), text.size());
    script.faults.push_back(readFault(text.substr(at, end - at)));
    at = end + 1;
  }
}

/// Every fault of that name counts the call; the first whose number it is comes.
Fault cleave::cuda::takeFault(const char *name, int device) {
  static Script script;
  std::lock_guard<std::mutex> lock(script.mutex);
  std::string text = getSetting("CLEAVE_EMULATION_FAIL", "");
  if (text != script.text)
    readScript(script, text);
  for (Planned &planned : script.faults)
    if (planned.name == name && (planned.device < 0 || planned.device == device) && ++planned.seen == planned.number)
      return planned.fault;
  return {};
}

/// For calls of the driver, and of libraries above it, which take the code for one of theirs.
Result cleave::cuda::enter(const char *name) {
  ContextHandle *device = getCurrent();
  Fault fault = takeFault(name, device ? device->ordinal : -1);
  if (fault.code == 0)
    return Result::Success;
  auto result = Result(fault.code);
  // What a kernel does wrong is said by every call from then on.
  bool sticks = fault.code >= int(Result::IllegalAddress) && fault.code <= int(Result::LaunchFailed);
  if (sticks && device) {
    Lock lock(device->mutex);
    device->sticky = result;
  }
  return result;
}
