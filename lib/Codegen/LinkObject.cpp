//===- LinkObject.cpp - from an object file to a shared library -----------===//
//
// lld as a library: no linker needs to be installed. Kernels may call the C library's mathematics and allocator. The
// library must name those, for a program that loads it late and privately (an extension of an interpreter) hands it no
// symbols of its own; they are linked from where this process has them.
//
//===----------------------------------------------------------------------===//
#include "cleave/Codegen/Codegen.h"

#include "cleave/Support/Status.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <link.h>
#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace cleave;

/// The files of the C library that this process runs on.
static std::vector<std::string> getLibraries() {
  std::vector<std::string> found;
  auto visit = [](dl_phdr_info *info, size_t, void *result) {
    llvm::StringRef name = llvm::sys::path::filename(info->dlpi_name);
    if (name.starts_with("libm.so.") || name.starts_with("libc.so."))
      static_cast<std::vector<std::string> *>(result)->push_back(info->dlpi_name);
    return 0;
  };
  dl_iterate_phdr(visit, &found);
  return found;
}

static llvm::Error writeFile(llvm::StringRef path, llvm::StringRef bytes) {
  std::error_code code;
  llvm::raw_fd_ostream os(path, code);
  os << bytes;
  os.close();
  code = code ? code : os.error();
  os.clear_error();
  return code ? makeError("cannot write {0}: {1}", path, code.message()) : llvm::Error::success();
}

static llvm::Error runLinker(const std::vector<std::string> &words) {
  std::vector<const char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(word.c_str());
  std::string said;
  llvm::raw_string_ostream os(said);
  // lld keeps what it works on in globals, and models are compiled by several threads.
  static std::mutex oneAtATime;
  std::lock_guard<std::mutex> lock(oneAtATime);
  lld::Result result = lld::lldMain(arguments, os, os, {{lld::Gnu, &lld::elf::link}});
  return result.retCode ? makeError("cannot link kernels: {0}", llvm::StringRef(said).trim()) : llvm::Error::success();
}

llvm::Expected<std::string> cleave::codegen::linkObject(llvm::StringRef object) {
  llvm::SmallString<128> folder;
  if (std::error_code code = llvm::sys::fs::createUniqueDirectory("cleave", folder))
    return makeError("no temporary folder: {0}", code.message());
  llvm::scope_exit remove([&] { llvm::sys::fs::remove_directories(folder); });
  std::string input = (folder + "/kernels.o").str(), output = (folder + "/kernels.so").str();
  if (llvm::Error error = writeFile(input, object))
    return std::move(error);
  std::vector<std::string> words{
      "ld.lld", "-shared", "-s", "--build-id=none", "--hash-style=gnu", "-znow", "--threads=1", "--as-needed",
      "-o",     output,    input};
  llvm::append_range(words, getLibraries());
  if (llvm::Error error = runLinker(words))
    return std::move(error);
  auto linked = llvm::MemoryBuffer::getFile(output);
  if (!linked)
    return makeError("cannot read {0}: {1}", output, linked.getError().message());
  return (*linked)->getBuffer().str();
}
