//===- Weights.cpp - weights from files into memory -----------------------===//
//
// Finding files, holding them against what the program says, and the walk over the rows of a box.
//
//===----------------------------------------------------------------------===//
#include "Weights.h"
#include "Layout.h"
#include "cleave/Program/Digest.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"
#include "cleave/Runtime/Files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace cleave::program;
using cleave::runtime::FileBytes;
using cleave::runtime::Scatter;
using cleave::runtime::WeightFiles;

WeightFiles::WeightFiles(const Program &program, std::string programFolder, std::string folder,
                         const FileBytes *programFile, bool verifies)
    : program(program), programFolder(std::move(programFolder)), folder(std::move(folder)), programFile(programFile),
      verifies(verifies), descriptors(program.files.size(), -1) {}

WeightFiles::~WeightFiles() {
  for (int descriptor : descriptors)
    if (descriptor >= 0)
      close(descriptor);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// Absolute paths stay what they are.
static std::string join(const std::string &folder, const std::string &path) {
  return folder.empty() || path.front() == '/' ? path : folder + "/" + path;
}

std::vector<std::string> cleave::runtime::getCandidates(const File &file, const std::string &programFolder,
                                                        const std::string &folder) {
  std::string name = file.path.substr(file.path.rfind('/') + 1);
  const std::string &base = folder.empty() ? programFolder : folder;
  bool isAbsolute = file.path.front() == '/';
  std::vector<std::string> candidates;
  if (!isAbsolute || folder.empty())
    candidates.push_back(join(base, file.path));
  if (candidates.empty() || join(base, name) != candidates.back())
    candidates.push_back(join(base, name));
  return candidates;
}

Status WeightFiles::open(size_t index) {
  const File &file = program.files[index];
  std::vector<std::string> candidates = getCandidates(file, programFolder, folder);
  int descriptor = -1, code = ENOENT;
  std::string path;
  for (size_t i = 0; i < candidates.size() && descriptor < 0; ++i) {
    path = candidates[i];
    descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    code = descriptor < 0 ? errno : 0;
  }
  if (descriptor < 0) {
    std::string tried;
    for (const std::string &candidate : candidates)
      tried += (tried.empty() ? "" : ", ") + quote(candidate);
    return makeError("cannot open the file of weights ", quote(file.path), ": ", std::strerror(code), " (tried ", tried,
                     "; --weights names a folder)");
  }
  struct stat status;
  bool isFile = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  if (isFile && uint64_t(status.st_size) == file.bytes) {
    descriptors[index] = descriptor;
    return kGood;
  }
  close(descriptor);
  if (!isFile)
    return makeError("the file of weights ", quote(path), " is not a regular file");
  return makeError("the file of weights ", quote(path), " has ", uint64_t(status.st_size),
                   " bytes, the program was compiled with ", file.bytes, ": compile it again");
}

/// `weight "w" in "weights.bin": ..`
Error WeightFiles::fail(const Weight &weight, const Error &why) const {
  std::string place = weight.file < 0 ? "" : concat(" in ", quote(program.files[weight.file].path));
  return makeError("weight ", quote(weight.name), place, ": ", why.message);
}

/// Size of the file first, then the digest of a sample of the weight's bytes: whether it is another file is known before anything is
/// read. All that is read is verified later.
Status WeightFiles::check(const Weight &weight) {
  for (uint32_t part : weight.parts)
    if (Status error = check(program.weights[part]))
      return error;
  if (weight.file < 0)
    return kGood;
  if (descriptors[weight.file] < 0)
    if (Status error = open(size_t(weight.file)))
      return error;
  if (!verifies)
    return kGood;
  Status failed;
  std::string digest = digestSample(weight.length, [&](uint64_t offset, char *to, size_t bytes) {
    failed = readAt(descriptors[weight.file], weight.offset + offset, to, bytes);
    return !failed;
  });
  if (failed)
    return fail(weight, *failed);
  if (digest == weight.digest)
    return kGood;
  return makeError("weight ", quote(weight.name), " in ", quote(program.files[weight.file].path),
                   " has changed: its digest is ", digest, ", the program was compiled with ", weight.digest,
                   ": compile it again");
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// Bytes of a weight, by their place in it. A window of whole blocks moves over them: what is in it has been verified.
class WeightFiles::Rows {
public:
  /// Of an open file, from `begin` on.
  Rows(const Weight &weight, int descriptor, uint64_t begin, uint64_t length)
      : weight(weight), descriptor(descriptor), begin(begin), length(length) {}
  /// Bytes in memory are not moved.
  Rows(const Weight &weight, std::string_view bytes) : weight(weight), memory(bytes.data()), length(bytes.size()) {}

  /// `bytes` (some) at `offset`, until the next call; null, and `error`, if they are gone or others.
  const char *fetch(uint64_t offset, uint64_t bytes) {
    uint64_t from = offset / kDigestBlock, to = countBlocks(offset + bytes);
    if (from < first || to > end)
      error = move(from, to);
    if (error)
      return nullptr;
    return memory ? memory + offset : window.data() + (offset - first * kDigestBlock);
  }

  void verify(bool wanted) { verifies = wanted && !weight.blocks.empty(); }

  Status error;

private:
  uint64_t getSize(uint64_t block) const { return std::min(kDigestBlock, length - block * kDigestBlock); }

  /// The window goes to the blocks [from, to). Rows are read in their order: what two windows share is its end, and stays.
  Status move(uint64_t from, uint64_t to) {
    uint64_t known = from >= first && from < end ? end : from;
    if (!memory) {
      if (known > from)
        std::memmove(window.data(), window.data() + (from - first) * kDigestBlock, (known - from) * kDigestBlock);
      window.resize(std::max<size_t>(window.size(), (to - from) * kDigestBlock));
    }
    first = from;
    for (end = known; end < to; ++end)
      if (Status failed = take(end))
        return failed;
    return kGood;
  }

  Status take(uint64_t block) {
    const char *bytes = memory ? memory + block * kDigestBlock : nullptr;
    if (!memory) {
      char *place = window.data() + (block - first) * kDigestBlock;
      if (Status failed = readAt(descriptor, begin + block * kDigestBlock, place, getSize(block)))
        return failed;
      bytes = place;
    }
    if (!verifies)
      return kGood;
    uint64_t digest = hashBytes({bytes, getSize(block)});
    if (digest == weight.blocks[block])
      return kGood;
    return makeError("its bytes ", block * kDigestBlock, " to ", block * kDigestBlock + getSize(block) - 1,
                     " have changed, or are damaged: their digest is ", formatDigest(digest),
                     ", the program was compiled with ", formatDigest(weight.blocks[block]), ": compile it again");
  }

  const Weight &weight;
  const char *memory = nullptr;
  int descriptor = -1;
  uint64_t begin = 0, length = 0;
  bool verifies = false;
  /// The blocks [first, end) are there.
  uint64_t first = 0, end = 0;
  std::vector<char> window;
};

WeightFiles::Reader::Reader() = default;
WeightFiles::Reader::~Reader() = default;

/// What the reader holds of the same weight is kept.
WeightFiles::Rows &WeightFiles::getRows(const Weight &weight, Reader &reader) const {
  if (reader.rows && reader.weight == &weight && !reader.rows->error)
    return *reader.rows;
  reader.weight = &weight;
  if (weight.file >= 0)
    reader.rows = std::make_unique<Rows>(weight, descriptors[weight.file], weight.offset, weight.length);
  else if (!programFile)
    reader.rows = std::make_unique<Rows>(weight, weight.embedded);
  else
    reader.rows =
        std::make_unique<Rows>(weight, programFile->getDescriptor(),
                               uint64_t(weight.embedded.data() - programFile->get().data()), weight.embedded.size());
  reader.rows->verify(verifies);
  return *reader.rows;
}

/// How many elements of a row are fetched at once.
static constexpr int64_t kChunk = 1 << 16;

/// Row by row in the order of the file; rows that are long in pieces. Entries of a stack lie in a file each. What is not there stays
/// zero.
Status WeightFiles::load(const Load &load, uint32_t rank, char *target, Reader &reader) const {
  const Weight &weight = program.weights[load.weight];
  const Type &whole = program.types[weight.type];
  Scatter scatter(load, whole.element, program.types[load.target.type].element);
  std::vector<int64_t> shape = getPresent(program, load.present, load.shape, rank);
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    return kGood;
  std::vector<int64_t> index(load.shape.size()), starts;
  for (const Number &start : load.starts)
    starts.push_back(program.evaluate(start, rank));
  if (weight.parts.empty())
    return loadRows(weight, shape, starts, /*first=*/0, index, scatter, target, reader);
  for (; index[0] < shape[0]; ++index[0]) {
    const Weight &part = program.weights[weight.parts[starts[0] + index[0]]];
    if (Status error = loadRows(part, shape, starts, /*first=*/1, index, scatter, target, reader))
      return error;
  }
  return kGood;
}

/// The dims from `first` on are those of `weight`; those before stay where `index` is.
Status WeightFiles::loadRows(const Weight &weight, const std::vector<int64_t> &shape,
                             const std::vector<int64_t> &starts, size_t first, std::vector<int64_t> index,
                             Scatter &scatter, char *target, Reader &reader) const {
  const Type &whole = program.types[weight.type];
  size_t dims = shape.size();
  uint64_t size = getElementBytes(whole.element);
  Rows &rows = getRows(weight, reader);
  const char *element = weight.splat ? rows.fetch(0, size) : nullptr;
  if (weight.splat && !element)
    return fail(weight, *rows.error);
  if (weight.splat && first == 0) {
    scatter.fill(element, shape, target);
    return kGood;
  }
  int64_t row = dims ? shape.back() : 1;
  std::vector<char> repeated;
  for (int64_t i = 0; weight.splat && i < std::min(kChunk, row); ++i)
    repeated.insert(repeated.end(), element, element + size);
  for (;;) {
    uint64_t place = 0;
    for (size_t dim = first; dim < dims; ++dim)
      place = place * uint64_t(whole.shape[dim - first]) + uint64_t(starts[dim] + index[dim]);
    for (int64_t at = 0; at < row; at += kChunk) {
      int64_t count = std::min(kChunk, row - at);
      const char *source =
          weight.splat ? repeated.data() : rows.fetch((place + uint64_t(at)) * size, uint64_t(count) * size);
      if (!source)
        return fail(weight, *rows.error);
      scatter.put(index, at, count, source, target);
    }
    size_t dim = dims ? dims - 1 : 0;
    while (dim-- > first) {
      if (++index[dim] < shape[dim])
        break;
      index[dim] = 0;
    }
    if (dim + 1 == first)
      return kGood;
  }
}
