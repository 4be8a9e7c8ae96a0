//===- Npz.cpp - numpy's archive of arrays --------------------------------===//
//
// The archive itself is libzip's business. Reading an entry: its sizes as the archive claims them are checked against
// what the archive's bytes can hold (deflate expands at most 1032-fold), then its header against its size, and only
// then memory is taken. libzip verifies the checksum when the end of the entry is read.
//
//===----------------------------------------------------------------------===//
#include "cleave/Support/Npz.h"
#include "NpyHeader.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSet.h"
#include <memory>
#include <zip.h>

using namespace llvm;

namespace cleave {

/// The longest header that is looked for: numpy's limit is 10,000 characters.
static constexpr uint64_t kMaxHeader = 16384;
static constexpr uint64_t kMaxDeflateRatio = 1032;

const NpyArray *findArray(const NpzArrays &arrays, StringRef name) {
  for (const auto &entry : arrays)
    if (entry.first == name)
      return &entry.second;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

struct Discard {
  void operator()(zip_t *archive) const { zip_discard(archive); }
  void operator()(zip_file_t *entry) const { zip_fclose(entry); }
};
using Archive = std::unique_ptr<zip_t, Discard>;
using Entry = std::unique_ptr<zip_file_t, Discard>;

/// libzip's error as one of ours.
Error makeZipError(zip_error_t *error) {
  std::string text = zip_error_strerror(error);
  return makeError("{0}", StringRef(text).lower());
}

class NpzReader {
public:
  NpzReader(const MappedFile &file) : file(file) {}

  Error open();
  /// All wanted arrays; without their elements if `headersOnly`.
  Expected<NpzArrays> read(function_ref<bool(StringRef)> wanted, bool headersOnly);

private:
  Expected<NpyArray> readEntry(uint64_t index, bool headersOnly);
  Error checkClaims(const zip_stat_t &status);
  Error readBytes(zip_file_t *entry, char *out, uint64_t bytes);

  const MappedFile &file;
  Archive archive;
};

} // namespace

Error NpzReader::open() {
  StringRef bytes = file.getBytes();
  // libzip takes no bytes for no entries.
  if (bytes.empty())
    return makeError("the file is empty");
  zip_error_t error;
  zip_error_init(&error);
  scope_exit finish([&] { zip_error_fini(&error); });
  zip_source_t *source = zip_source_buffer_create(bytes.data(), bytes.size(), /*freep=*/0, &error);
  if (source) {
    archive.reset(zip_open_from_source(source, ZIP_RDONLY, &error));
    if (!archive)
      zip_source_free(source);
  }
  return archive ? Error::success() : makeZipError(&error);
}

Expected<NpzArrays> NpzReader::read(function_ref<bool(StringRef)> wanted, bool headersOnly) {
  NpzArrays arrays;
  StringSet<> names;
  for (int64_t index = 0, end = zip_get_num_entries(archive.get(), 0); index < end; ++index) {
    const char *raw = zip_get_name(archive.get(), index, ZIP_FL_ENC_RAW);
    if (!raw)
      return makeZipError(zip_get_error(archive.get()));
    StringRef name = raw;
    if (!name.consume_back(".npy"))
      return makeError("entry {0} is not a numpy array", quote(name));
    if (!names.insert(name).second)
      return makeError("it has two arrays named {0}", quote(name));
    if (wanted && !wanted(name))
      continue;
    Expected<NpyArray> array = readEntry(index, headersOnly);
    if (!array)
      return addContext("array " + quote(name) + ": ", array.takeError());
    arrays.emplace_back(name.str(), std::move(*array));
  }
  return arrays;
}

Error NpzReader::checkClaims(const zip_stat_t &status) {
  constexpr uint64_t wanted = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if ((status.valid & wanted) != wanted)
    return makeError("the archive does not say how long it is");
  uint64_t most = file.getBytes().size();
  if (status.comp_size > most || (status.comp_method != ZIP_CM_STORE && status.comp_method != ZIP_CM_DEFLATE))
    return makeError("it is damaged or compressed in a way that is not supported");
  uint64_t ratio = status.comp_method == ZIP_CM_STORE ? 1 : kMaxDeflateRatio;
  if (status.size / ratio > status.comp_size)
    return makeError("{0} bytes of the archive cannot hold the {1} bytes that it claims", status.comp_size,
                     status.size);
  return Error::success();
}

Error NpzReader::readBytes(zip_file_t *entry, char *out, uint64_t bytes) {
  while (bytes) {
    int64_t got = zip_fread(entry, out, bytes);
    if (got < 0)
      return makeZipError(zip_file_get_error(entry));
    if (got == 0)
      return makeError("the archive ends {0} bytes too early", bytes);
    out += got;
    bytes -= got;
  }
  return Error::success();
}

/// The header is read and checked before any memory is taken for elements; the checksum is compared last.
Expected<NpyArray> NpzReader::readEntry(uint64_t index, bool headersOnly) {
  zip_stat_t status;
  if (zip_stat_index(archive.get(), index, 0, &status) != 0)
    return makeZipError(zip_get_error(archive.get()));
  if (Error error = checkClaims(status))
    return std::move(error);
  Entry entry(zip_fopen_index(archive.get(), index, 0));
  if (!entry)
    return makeZipError(zip_get_error(archive.get()));

  std::string head(std::min<uint64_t>(status.size, kMaxHeader), '\0');
  if (Error error = readBytes(entry.get(), head.data(), head.size()))
    return std::move(error);
  Expected<NpyHeader> header = parseNpyHeader(head);
  if (!header)
    return header.takeError();
  if (status.size - header->dataStart != header->dataBytes)
    return makeError("it has {0} bytes of elements, its shape needs {1}", status.size - header->dataStart,
                     header->dataBytes);
  if (headersOnly)
    return std::move(header->array);

  std::vector<char> &data = header->array.data;
  data.resize(header->dataBytes);
  StringRef start = StringRef(head).drop_front(header->dataStart);
  std::copy(start.begin(), start.end(), data.begin());
  if (Error error = readBytes(entry.get(), data.data() + start.size(), data.size() - start.size()))
    return std::move(error);
  // The read that meets the end is the one that compares the checksum.
  char beyond;
  if (zip_fread(entry.get(), &beyond, 1) != 0)
    return makeZipError(zip_file_get_error(entry.get()));
  if (Error error = finishNpy(*header))
    return std::move(error);
  return std::move(header->array);
}

static Expected<NpzArrays> readArchive(const MappedFile &file, function_ref<bool(StringRef)> wanted, bool headersOnly) {
  NpzReader reader(file);
  Error error = reader.open();
  Expected<NpzArrays> arrays = error ? Expected<NpzArrays>(std::move(error)) : reader.read(wanted, headersOnly);
  if (!arrays)
    return addContext("cannot read " + quote(file.getPath()) + ": ", arrays.takeError());
  return arrays;
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

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// 1 January 1980, 0:00, the first time that a zip archive can name.
static constexpr uint16_t kFixedDate = (1 << 5) | 1, kFixedTime = 0;

static Error checkArrays(const NpzArrays &arrays) {
  StringSet<> names;
  for (const auto &[name, array] : arrays) {
    if (name.empty() || StringRef(name).contains('\0'))
      return makeError("{0} cannot be the name of an array", quote(name));
    if (!names.insert(name).second)
      return makeError("two arrays are named {0}", quote(name));
    if (Error error = checkNpy(array))
      return addContext("array " + quote(name) + ": ", std::move(error));
  }
  return Error::success();
}

/// Adds an entry whose bytes stay where they are until the archive is closed.
static bool addEntry(zip_t *archive, const std::string &name, const std::string &header, const NpyArray &array) {
  auto *headBytes = reinterpret_cast<zip_uint8_t *>(const_cast<char *>(header.data()));
  auto *dataBytes = reinterpret_cast<zip_uint8_t *>(const_cast<char *>(array.data.data()));
  zip_buffer_fragment_t fragments[] = {{headBytes, header.size()}, {dataBytes, array.data.size()}};
  zip_error_t ignored; // the archive's own error tells the same
  zip_error_init(&ignored);
  zip_source_t *source = zip_source_buffer_fragment_create(fragments, array.data.empty() ? 1 : 2, 0, &ignored);
  zip_error_fini(&ignored);
  if (!source)
    return false;
  int64_t index = zip_file_add(archive, (name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return false;
  }
  return zip_set_file_compression(archive, index, ZIP_CM_STORE, 0) == 0 &&
         zip_file_set_dostime(archive, index, kFixedTime, kFixedDate, 0) == 0;
}

/// The finished archive from memory into a stream.
static Error copyTo(zip_source_t *source, raw_ostream &stream) {
  if (zip_source_open(source) != 0)
    return makeZipError(zip_source_error(source));
  scope_exit close([&] { zip_source_close(source); });
  std::vector<char> buffer(1 << 16);
  while (int64_t got = zip_source_read(source, buffer.data(), buffer.size())) {
    if (got < 0)
      return makeZipError(zip_source_error(source));
    stream.write(buffer.data(), got);
  }
  return Error::success();
}

static Error writeArchive(const NpzArrays &arrays, raw_ostream &stream) {
  // libzip takes an archive without entries to mean that there is to be no file.
  if (arrays.empty()) {
    stream << StringRef("PK\5\6", 4).str() + std::string(18, '\0');
    return Error::success();
  }
  zip_error_t error;
  zip_error_init(&error);
  scope_exit finish([&] { zip_error_fini(&error); });
  zip_source_t *target = zip_source_buffer_create(nullptr, 0, 0, &error);
  if (!target)
    return makeZipError(&error);
  zip_source_keep(target);
  scope_exit release([&] { zip_source_free(target); });
  Archive archive(zip_open_from_source(target, ZIP_TRUNCATE, &error));
  if (!archive) {
    zip_source_free(target);
    return makeZipError(&error);
  }
  std::vector<std::string> headers;
  for (const auto &entry : arrays)
    headers.push_back(formatNpyHeader(entry.second));
  for (auto [entry, header] : zip_equal(arrays, headers))
    if (!addEntry(archive.get(), entry.first, header, entry.second))
      return makeZipError(zip_get_error(archive.get()));
  if (zip_close(archive.get()) != 0)
    return makeZipError(zip_get_error(archive.get()));
  archive.release();
  return copyTo(target, stream);
}

Error writeNpz(StringRef path, const NpzArrays &arrays) {
  if (Error error = checkArrays(arrays))
    return addContext("cannot write " + quote(path) + ": ", std::move(error));
  return writeFileAtomically(path, [&](raw_ostream &stream) { return writeArchive(arrays, stream); });
}

} // namespace cleave
