//===- Libraries.cpp - opening CUDA's libraries by name -------------------===//
//
// The first file that opens is taken, and must have every entry: an older one behind it might have them, but a mixture of
// versions is worse than an error. Symbols stay local, so that a process may have opened the same libraries for itself.
//
//===----------------------------------------------------------------------===//
#include "cleave/Cuda/Libraries.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <glob.h>
#include <mutex>
#include <sys/stat.h>
#include <vector>

using namespace cleave;
using namespace cleave::cuda;
using program::concat;

//===----------------------------------------------------------------------===//
// Where libraries lie
//===----------------------------------------------------------------------===//

/// What a library may be called, newest first: the number behind `.so.` counts its incompatible changes.
static const std::vector<const char *> kDriverNames = {"libcuda.so.1", "libcuda.so"};
static const std::vector<const char *> kBlasNames = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
static const std::vector<const char *> kDnnNames = {"libcudnn.so.9", "libcudnn.so"};
static const std::vector<const char *> kNcclNames = {"libnccl.so.2", "libnccl.so"};

static std::string getVariable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

static bool isFolder(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// Folders that fit a pattern of the shell.
static void addMatches(std::vector<std::string> &folders, const std::string &pattern) {
  glob_t found = {};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; ++i)
      folders.push_back(found.gl_pathv[i]);
  globfree(&found);
}

/// Behind the dynamic linker's own way, which is the empty folder. Wheels of pip lie below `nvidia`, one folder for each
/// library up to CUDA 12 (`nvidia/cublas/lib`), one for all from 13 on (`nvidia/cu13/lib`).
static std::vector<std::string> listFolders() {
  std::vector<std::string> folders = {""};
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (std::string home = getVariable(variable); !home.empty())
      for (const char *inner : {"/lib64", "/lib"})
        folders.push_back(home + inner);
  folders.push_back("/usr/local/cuda/lib64");
  std::vector<std::string> pythons;
  if (std::string environment = getVariable("VIRTUAL_ENV"); !environment.empty())
    pythons.push_back(environment + "/lib");
  if (std::string home = getVariable("HOME"); !home.empty())
    pythons.push_back(home + "/.local/lib");
  pythons.insert(pythons.end(), {"/usr/local/lib", "/usr/lib"});
  for (const std::string &python : pythons)
    addMatches(folders, python + "/python3*/*-packages/nvidia/*/lib");
  // Variables often say what is tried anyway.
  for (auto folder = folders.begin(); folder != folders.end();)
    folder = std::find(folders.begin(), folder, *folder) == folder ? folder + 1 : folders.erase(folder);
  return folders;
}

namespace {
struct Chosen {
  std::mutex mutex;
  std::string library;
};
} // namespace

static Chosen &getChosen() {
  static Chosen chosen;
  return chosen;
}

void cleave::cuda::setLibrary(const std::string &path) {
  std::lock_guard<std::mutex> lock(getChosen().mutex);
  getChosen().library = path;
}

static std::string getGiven() {
  std::string given = getVariable("CLEAVE_CUDA_LIBRARY");
  std::lock_guard<std::mutex> lock(getChosen().mutex);
  return given.empty() ? getChosen().library : given;
}

/// Paths to try, in order.
static std::vector<std::string> listPaths(const std::vector<const char *> &names) {
  std::string given = getGiven();
  if (!given.empty() && !isFolder(given))
    return {given};
  std::vector<std::string> paths;
  for (const std::string &folder : given.empty() ? listFolders() : std::vector<std::string>{given})
    for (const char *name : names)
      paths.push_back(folder.empty() ? name : folder + "/" + name);
  return paths;
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

namespace {

/// An open library, and what was found in it.
struct Library {
  void *handle = nullptr;
  std::string path;
  std::string missing; ///< the first entry that it lacks

  template <typename Fn> void find(Fn *&entry, const char *name, bool isOptional = false) {
    entry = reinterpret_cast<Fn *>(dlsym(handle, name));
    if (!entry && !isOptional && missing.empty())
      missing = name;
  }
};

} // namespace

static Library findEntries(Library library, Driver &driver) {
#define CLEAVE_CUDA_FIND(name, parameters) library.find(driver.name, #name);
  CLEAVE_CUDA_DRIVER_ENTRIES(CLEAVE_CUDA_FIND)
#undef CLEAVE_CUDA_FIND
  return library;
}

static Library findEntries(Library library, Blas &blas) {
#define CLEAVE_CUDA_FIND(name, parameters) library.find(blas.name, #name);
  CLEAVE_CUDA_BLAS_ENTRIES(CLEAVE_CUDA_FIND)
#undef CLEAVE_CUDA_FIND
  return library;
}

static Library findEntries(Library library, Dnn &dnn) {
#define CLEAVE_CUDA_FIND(name, parameters) library.find(dnn.name, #name);
  CLEAVE_CUDA_DNN_ENTRIES(CLEAVE_CUDA_FIND)
#undef CLEAVE_CUDA_FIND
  return library;
}

static Library findEntries(Library library, Nccl &nccl) {
#define CLEAVE_CUDA_FIND(name, parameters) library.find(nccl.name, #name);
  CLEAVE_CUDA_NCCL_ENTRIES(CLEAVE_CUDA_FIND)
#undef CLEAVE_CUDA_FIND
#define CLEAVE_CUDA_FIND(name, parameters) library.find(nccl.name, #name, /*isOptional=*/true);
  CLEAVE_CUDA_NCCL_LATER_ENTRIES(CLEAVE_CUDA_FIND)
#undef CLEAVE_CUDA_FIND
  return library;
}

static std::string describeTried(const std::vector<std::string> &paths) {
  std::string tried;
  for (const std::string &path : paths)
    tried += concat(tried.empty() ? "" : ", ", path);
  return tried;
}

/// What the linker says of a file that is there says more than that others are not.
template <typename Table>
static program::Result<const Table *> open(const char *what, const std::vector<const char *> &names) {
  static Table table;
  std::vector<std::string> paths = listPaths(names);
  std::string reason;
  for (const std::string &path : paths) {
    void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char *why = dlerror();
      if (struct stat status; why && stat(path.c_str(), &status) == 0)
        reason = concat(" (", why, ")");
      continue;
    }
    Library library = findEntries({handle, path, ""}, table);
    if (library.missing.empty())
      return &table;
    return program::makeError(path, " has no ", library.missing, ": ", what, " is too old, or this is another library");
  }
  return program::makeError("no ", what, " found", reason, "; tried ", describeTried(paths));
}

/// Unless the user does without it: a list of words with commas.
template <typename Table>
static program::Result<const Table *> openWanted(const std::string &word, const char *what,
                                                 const std::vector<const char *> &names) {
  if (concat(",", getVariable("CLEAVE_CUDA_WITHOUT"), ",").find("," + word + ",") != std::string::npos)
    return program::makeError("CLEAVE_CUDA_WITHOUT names ", word);
  return open<Table>(what, names);
}

// The answer of the first call is that of all.
program::Result<const Driver *> cuda::openDriver() {
  static const program::Result<const Driver *> driver = open<Driver>("CUDA driver (12 or later)", kDriverNames);
  return driver;
}

program::Result<const Blas *> cuda::openBlas() {
  static const program::Result<const Blas *> blas = openWanted<Blas>("cublasLt", "cuBLASLt (12 or later)", kBlasNames);
  return blas;
}

program::Result<const Dnn *> cuda::openDnn() {
  static const program::Result<const Dnn *> dnn = openWanted<Dnn>("cudnn", "cuDNN (9)", kDnnNames);
  return dnn;
}

program::Result<const Nccl *> cuda::openNccl() {
  static const program::Result<const Nccl *> nccl = open<Nccl>("NCCL (2.18 or later)", kNcclNames);
  return nccl;
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

std::string cuda::describe(const Driver &driver, Result error) {
  const char *name = nullptr, *text = nullptr;
  if (driver.cuGetErrorName(error, &name) != Result::Success || !name)
    return concat("CUDA error ", int(error));
  if (driver.cuGetErrorString(error, &text) != Result::Success || !text)
    return name;
  return concat(name, ": ", text);
}

std::string cuda::describe(NcclResult error) {
  static const char *const names[] = {"ncclSuccess",       "ncclUnhandledCudaError", "ncclSystemError",
                                      "ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
                                      "ncclRemoteError",   "ncclInProgress"};
  unsigned number = unsigned(error);
  return number < std::size(names) ? names[number] : concat("NCCL error ", int(error));
}

std::string cuda::describe(BlasStatus status) {
  switch (status) {
  case BlasStatus::Success:
    return "CUBLAS_STATUS_SUCCESS";
  case BlasStatus::NotInitialized:
    return "CUBLAS_STATUS_NOT_INITIALIZED";
  case BlasStatus::AllocFailed:
    return "CUBLAS_STATUS_ALLOC_FAILED";
  case BlasStatus::InvalidValue:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case BlasStatus::ArchMismatch:
    return "CUBLAS_STATUS_ARCH_MISMATCH";
  case BlasStatus::MappingError:
    return "CUBLAS_STATUS_MAPPING_ERROR";
  case BlasStatus::ExecutionFailed:
    return "CUBLAS_STATUS_EXECUTION_FAILED";
  case BlasStatus::InternalError:
    return "CUBLAS_STATUS_INTERNAL_ERROR";
  case BlasStatus::NotSupported:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return concat("cuBLAS status ", int(status));
}

std::string cuda::describe(DnnStatus status) {
  switch (status) {
  case DnnStatus::Success:
    return "CUDNN_STATUS_SUCCESS";
  case DnnStatus::NotInitialized:
    return "CUDNN_STATUS_NOT_INITIALIZED";
  case DnnStatus::SublibraryLoadingFailed:
    return "CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED";
  case DnnStatus::BadParameter:
    return "CUDNN_STATUS_BAD_PARAM";
  case DnnStatus::NullPointer:
    return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
  case DnnStatus::NotFinalized:
    return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
  case DnnStatus::ShapeMismatch:
    return "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH";
  case DnnStatus::AttributeType:
    return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
  case DnnStatus::NotSupported:
    return "CUDNN_STATUS_NOT_SUPPORTED";
  case DnnStatus::PatternNotSupported:
    return "CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN";
  case DnnStatus::ShapeNotSupported:
    return "CUDNN_STATUS_NOT_SUPPORTED_SHAPE";
  case DnnStatus::TypeNotSupported:
    return "CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE";
  case DnnStatus::LayoutNotSupported:
    return "CUDNN_STATUS_NOT_SUPPORTED_LAYOUT";
  case DnnStatus::InternalError:
    return "CUDNN_STATUS_INTERNAL_ERROR";
  case DnnStatus::ExecutionFailed:
    return "CUDNN_STATUS_EXECUTION_FAILED";
  }
  return concat("cuDNN status ", int(status));
}
