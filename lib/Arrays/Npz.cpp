//===- Npz.cpp - numpy's archive of arrays --------------------------------===//
//
// The archive itself is libzip's business. Reading an entry: its sizes as the archive claims them are checked against
// what the archive's bytes can hold (deflate expands at most 1032-fold), then its header against its size, and only
// then memory is taken. libzip verifies the checksum when the end of the entry is read.
//
//===----------------------------------------------------------------------===//
#include "cleave/Arrays/Npz.h"
#include "NpyHeader.h"
#include "cleave/Program/Content.h"

#include <algorithm>
#include <memory>
#include <set>
#include <zip.h>

using namespace cleave::arrays;
using cleave::program::Error;
using cleave::program::kGood;
using cleave::program::makeError;
using cleave::program::Result;
using cleave::program::Status;

/// The longest header that is looked for: numpy's limit is 10,000 characters.
static constexpr uint64_t kMaxHeader = 16384;
static constexpr uint64_t kMaxDeflateRatio = 1032;

const NpyArray *cleave::arrays::findArray(const NpzArrays &arrays, std::string_view name) {
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
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return makeError(text);
}

class NpzReader {
public:
  explicit NpzReader(std::string_view bytes) : bytes(bytes) {}

  Status open();
  /// All wanted arrays; without their elements if `headersOnly`.
  Result<NpzArrays> read(const std::function<bool(std::string_view)> &wanted, bool headersOnly);

private:
  Result<NpyArray> readEntry(uint64_t index, bool headersOnly);
  Status checkClaims(const zip_stat_t &status);
  Status readBytes(zip_file_t *entry, char *out, uint64_t count);

  std::string_view bytes;
  Archive archive;
};

} // namespace

Status NpzReader::open() {
  // libzip takes no bytes for no entries.
  if (bytes.empty())
    return makeError("the file is empty");
  if (std::string other = cleave::program::describeOther(bytes, cleave::program::Content::Npz, "an .npz archive");
      !other.empty())
    return makeError(other);
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t *source = zip_source_buffer_create(bytes.data(), bytes.size(), /*freep=*/0, &error);
  if (source) {
    archive.reset(zip_open_from_source(source, ZIP_RDONLY, &error));
    if (!archive)
      zip_source_free(source);
  }
  Status failed = archive ? Status() : makeZipError(&error);
  zip_error_fini(&error);
  return failed;
}

Result<NpzArrays> NpzReader::read(const std::function<bool(std::string_view)> &wanted, bool headersOnly) {
  NpzArrays arrays;
  std::set<std::string_view> names;
  for (int64_t index = 0, end = zip_get_num_entries(archive.get(), 0); index < end; ++index) {
    const char *raw = zip_get_name(archive.get(), index, ZIP_FL_ENC_RAW);
    if (!raw)
      return makeZipError(zip_get_error(archive.get()));
    std::string_view name = raw, ending = ".npy";
    if (name.size() < ending.size() || name.substr(name.size() - ending.size()) != ending)
      return makeError("entry ", quote(name), " is not a numpy array");
    name.remove_suffix(ending.size());
    if (!names.insert(name).second)
      return makeError("it has two arrays named ", quote(name));
    if (wanted && !wanted(name))
      continue;
    Result<NpyArray> array = readEntry(uint64_t(index), headersOnly);
    if (!array)
      return makeError("array ", quote(name), ": ", array.getError().message);
    arrays.emplace_back(name, std::move(*array));
  }
  return arrays;
}

Status NpzReader::checkClaims(const zip_stat_t &status) {
  constexpr uint64_t wanted = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if ((status.valid & wanted) != wanted)
    return makeError("the archive does not say how long it is");
  uint64_t most = bytes.size();
  if (status.comp_size > most || (status.comp_method != ZIP_CM_STORE && status.comp_method != ZIP_CM_DEFLATE))
    return makeError("it is damaged or compressed in a way that is not supported");
  uint64_t ratio = status.comp_method == ZIP_CM_STORE ? 1 : kMaxDeflateRatio;
  if (status.size / ratio > status.comp_size)
    return makeError(uint64_t(status.comp_size), " bytes of the archive cannot hold the ", uint64_t(status.size),
                     " bytes that it claims");
  return kGood;
}

Status NpzReader::readBytes(zip_file_t *entry, char *out, uint64_t count) {
  while (count) {
    int64_t got = zip_fread(entry, out, count);
    if (got < 0)
      return makeZipError(zip_file_get_error(entry));
    if (got == 0)
      return makeError("the archive ends ", count, " bytes too early");
    out += got;
    count -= uint64_t(got);
  }
  return kGood;
}

/// The header is read and checked before any memory is taken for elements; the checksum is compared last.
Result<NpyArray> NpzReader::readEntry(uint64_t index, bool headersOnly) {
  zip_stat_t status;
  if (zip_stat_index(archive.get(), index, 0, &status) != 0)
    return makeZipError(zip_get_error(archive.get()));
  if (Status error = checkClaims(status))
    return *error;
  Entry entry(zip_fopen_index(archive.get(), index, 0));
  if (!entry)
    return makeZipError(zip_get_error(archive.get()));

  std::string head(std::min<uint64_t>(status.size, kMaxHeader), '\0');
  if (Status error = readBytes(entry.get(), head.data(), head.size()))
    return *error;
  Result<NpyHeader> header = parseNpyHeader(head);
  if (!header)
    return header.getError();
  if (status.size - header->dataStart != header->dataBytes)
    return makeError("it has ", status.size - header->dataStart, " bytes of elements, its shape needs ",
                     header->dataBytes);
  if (headersOnly)
    return std::move(header->array);

  std::vector<char> &data = header->array.data;
  data.resize(header->dataBytes);
  std::string_view start = std::string_view(head).substr(header->dataStart);
  std::copy(start.begin(), start.end(), data.begin());
  if (Status error = readBytes(entry.get(), data.data() + start.size(), data.size() - start.size()))
    return *error;
  // The read that meets the end is the one that compares the checksum.
  char beyond;
  if (zip_fread(entry.get(), &beyond, 1) != 0)
    return makeZipError(zip_file_get_error(entry.get()));
  if (Status error = finishNpy(*header))
    return *error;
  return std::move(header->array);
}

Result<NpzArrays> cleave::arrays::readNpz(std::string_view bytes, const std::function<bool(std::string_view)> &wanted,
                                          bool headersOnly) {
  NpzReader reader(bytes);
  if (Status error = reader.open())
    return *error;
  return reader.read(wanted, headersOnly);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// 1 January 1980, 0:00, the first time that a zip archive can name.
static constexpr uint16_t kFixedDate = (1 << 5) | 1, kFixedTime = 0;

Status cleave::arrays::checkNpz(const NpzArrays &arrays) {
  std::set<std::string_view> names;
  for (const auto &[name, array] : arrays) {
    if (name.empty() || name.find('\0') != std::string::npos)
      return makeError(quote(name), " cannot be the name of an array");
    if (!names.insert(name).second)
      return makeError("two arrays are named ", quote(name));
    if (Status error = checkNpy(array))
      return makeError("array ", quote(name), ": ", error->message);
  }
  return kGood;
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

/// The finished archive from memory into a sink.
static Status copyTo(zip_source_t *source, const Sink &sink) {
  if (zip_source_open(source) != 0)
    return makeZipError(zip_source_error(source));
  std::vector<char> buffer(1 << 16);
  Status failed;
  while (int64_t got = zip_source_read(source, buffer.data(), buffer.size())) {
    if (got < 0)
      failed = makeZipError(zip_source_error(source));
    if (got < 0 || !sink(buffer.data(), size_t(got)))
      break;
  }
  zip_source_close(source);
  return failed;
}

namespace {
/// The archive that is being written, in memory; whatever happens, nothing of it is left behind.
struct Target {
  Target() { zip_error_init(&error); }
  ~Target() {
    if (source)
      zip_source_free(source);
    zip_error_fini(&error);
  }
  zip_error_t error;
  zip_source_t *source = nullptr;
};
} // namespace

Status cleave::arrays::writeNpz(const NpzArrays &arrays, const Sink &sink) {
  if (Status error = checkNpz(arrays))
    return error;
  // libzip takes an archive without entries to mean that there is to be no file.
  if (arrays.empty()) {
    std::string empty = std::string("PK\5\6", 4) + std::string(18, '\0');
    sink(empty.data(), empty.size());
    return kGood;
  }
  Target target;
  target.source = zip_source_buffer_create(nullptr, 0, 0, &target.error);
  if (!target.source)
    return makeZipError(&target.error);
  zip_source_keep(target.source);
  Archive archive(zip_open_from_source(target.source, ZIP_TRUNCATE, &target.error));
  if (!archive) {
    zip_source_free(target.source);
    return makeZipError(&target.error);
  }
  std::vector<std::string> headers;
  for (const auto &entry : arrays)
    headers.push_back(formatNpyHeader(entry.second));
  for (size_t i = 0; i < arrays.size(); ++i)
    if (!addEntry(archive.get(), arrays[i].first, headers[i], arrays[i].second))
      return makeZipError(zip_get_error(archive.get()));
  if (zip_close(archive.get()) != 0)
    return makeZipError(zip_get_error(archive.get()));
  (void)archive.release();
  return copyTo(target.source, sink);
}
