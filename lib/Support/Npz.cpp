//===- Npz.cpp - numpy's archive of arrays, in files ----------------------===//
//
// Files are mapped, and written whole or not at all; what is in them cleave/Arrays/Npz.h reads and writes.
//
//===----------------------------------------------------------------------===//
#include "cleave/Support/Npz.h"
#include "cleave/Support/Status.h"

using namespace llvm;

namespace cleave {

static Error toError(const program::Error &error) { return createStringError(inconvertibleErrorCode(), error.message); }

static Expected<NpzArrays> readArchive(const MappedFile &file, function_ref<bool(StringRef)> wanted, bool headersOnly) {
  std::function<bool(std::string_view)> filter;
  if (wanted)
    filter = [&](std::string_view name) { return wanted(name); };
  program::Result<NpzArrays> arrays = arrays::readNpz(file.getBytes(), filter, headersOnly);
  if (!arrays)
    return addContext("cannot read " + quote(file.getPath()) + ": ", toError(arrays.getError()));
  return std::move(*arrays);
}

Expected<NpzArrays> readNpz(const MappedFile &file, function_ref<bool(StringRef)> wanted) {
  return readArchive(file, wanted, /*headersOnly=*/false);
}

Expected<NpzArrays> readNpz(StringRef path, function_ref<bool(StringRef)> wanted) {
  Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(path);
  return file ? readNpz(**file, wanted) : file.takeError();
}

Expected<NpzArrays> readNpzHeaders(StringRef path) {
  Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(path);
  return file ? readArchive(**file, nullptr, /*headersOnly=*/true) : file.takeError();
}

/// What is wrong with the arrays is found before the file is touched.
Error writeNpz(StringRef path, const NpzArrays &arrays) {
  if (program::Status error = arrays::checkNpz(arrays))
    return addContext("cannot write " + quote(path) + ": ", toError(*error));
  return writeFileAtomically(path, [&](raw_ostream &stream) {
    program::Status error = arrays::writeNpz(arrays, [&](const char *bytes, size_t count) {
      stream.write(bytes, count);
      return true;
    });
    return error ? toError(*error) : Error::success();
  });
}

Expected<NpyArray> parseNpy(StringRef bytes) {
  program::Result<NpyArray> array = arrays::parseNpy(bytes);
  return array ? Expected<NpyArray>(std::move(*array)) : toError(array.getError());
}

} // namespace cleave
