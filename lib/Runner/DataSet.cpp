//===- DataSet.cpp - samples that a step is trained on --------------------===//
//
// Which arrays there are and whether they fit is known before the first step; elements are looked at batch by batch.
//
//   open     files ─▶ arrays by name ─▶ chunks of one column, in order ─▶ all columns have as many samples
//   read     sample number ─▶ chunk, row ─▶ checked against the range of the input ─▶ the next row of the batch
//
// A batch is put together anew for each step, in memory that stays: rows of one sample lie together in the files, those of a batch
// rarely do. Ranks that are processes read the same files, each for itself, and compare what they read when they call.
//
//===----------------------------------------------------------------------===//
#include "DataSet.h"
#include "NumpyTypes.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"

#include <algorithm>
#include <cstring>
#include <dirent.h>
#include <limits>
#include <sys/stat.h>

using namespace cleave::runner;
namespace program = cleave::program;
using program::concat;
using program::Element;
using program::makeError;
using program::printable;
using program::Result;
using program::Status;

static std::string inQuotes(const std::string &name) { return "'" + printable(name) + "'"; }

static bool isInteger(Element element) { return element >= Element::I8; }

/// Rows of indices may come in any integers.
static bool takes(Element wanted, Element given) {
  return wanted == given || ((wanted == Element::I32 || wanted == Element::I64) && isInteger(given));
}

static std::string describeElement(Element wanted) {
  return wanted == Element::I32 || wanted == Element::I64 ? "i32 or i64" : program::getWord(wanted);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

DataSet::Column *DataSet::find(const std::string &name) {
  auto found =
      std::find_if(columns.begin(), columns.end(), [&](const Column &each) { return each.input->name == name; });
  return found == columns.end() ? nullptr : &*found;
}

/// An array, or one more shard of it. Recorded inputs of a model begin with `in:`.
Status DataSet::add(const std::string &given, const std::string &dtype, const std::vector<int64_t> &shape,
                    const char *data, const std::string &file) {
  std::string name = given.substr(0, 3) == "in:" ? given.substr(3) : given;
  Column *column = find(name);
  if (!column) {
    unknown.push_back(name);
    return program::kGood;
  }
  Element element = getElement(dtype);
  std::vector<int64_t> all = shape;
  if (!column->chunks.empty()) {
    bool isAlike = element == column->element && !shape.empty() && shape.size() == column->shape.size() &&
                   std::equal(shape.begin() + 1, shape.end(), column->shape.begin() + 1);
    if (!isAlike)
      return makeError(inQuotes(name), " is ", format(program::Type{element, shape, {}}), " in ", printable(file),
                       ", and ", format(program::Type{column->element, column->shape, {}}), " before");
    all.front() += column->shape.front();
  }
  column->element = element;
  column->shape = std::move(all);
  column->chunks.push_back({data, shape.empty() ? 1 : uint64_t(shape.front())});
  return program::kGood;
}

/// All arrays that an input takes, in memory; of the others the names, for messages.
Status DataSet::openFile(const std::string &path) {
  runtime::FileBytes file;
  if (Status error = file.read(path))
    return error;
  auto isWanted = [&](std::string_view name) {
    std::string text(name);
    return find(text.substr(0, 3) == "in:" ? text.substr(3) : text) != nullptr;
  };
  Result<arrays::NpzArrays> read = arrays::readNpz(file.get(), isWanted);
  Result<arrays::NpzArrays> headers = arrays::readNpz(file.get(), nullptr, /*headersOnly=*/true);
  if (!read || !headers)
    return makeError("cannot read ", printable(path), ": ", (read ? headers : read).getError().message);
  archives.push_back(std::make_unique<arrays::NpzArrays>(std::move(*read)));
  for (const auto &[name, array] : *archives.back())
    if (Status error = add(name, array.dtype, array.shape, array.data.data(), path))
      return error;
  for (const auto &[name, array] : *headers)
    if (!isWanted(name))
      unknown.push_back(name);
  return program::kGood;
}

/// Files of single arrays are mapped.
Status DataSet::openArrays(const std::string &folder, const std::vector<std::string> &names) {
  for (const std::string &name : names) {
    std::string path = folder + "/" + name;
    auto &file = files.emplace_back(std::make_unique<runtime::FileBytes>());
    if (Status error = file->map(path))
      return error;
    Result<arrays::NpyView> view = arrays::viewNpy(file->get());
    if (!view)
      return makeError("cannot read ", printable(path), ": ", view.getError().message);
    if (Status error = add(name.substr(0, name.size() - 4), view->dtype, view->shape, view->data, path))
      return error;
  }
  return program::kGood;
}

/// Names of the files in a folder that end so, in order.
static std::vector<std::string> listFiles(const std::string &folder, const std::string &ending) {
  std::vector<std::string> names;
  DIR *open = opendir(folder.c_str());
  for (dirent *entry = open ? readdir(open) : nullptr; entry; entry = readdir(open)) {
    std::string name = entry->d_name;
    if (name.size() > ending.size() && name.compare(name.size() - ending.size(), ending.size(), ending) == 0)
      names.push_back(name);
  }
  if (open)
    closedir(open);
  std::sort(names.begin(), names.end());
  return names;
}

//===----------------------------------------------------------------------===//
// What fits
//===----------------------------------------------------------------------===//

uint64_t cleave::runner::countStepsPerCall(const program::Program &program) {
  for (const program::Tensor &output : program.variants.front().outputs)
    if (const program::Type &type = program.types[output.type]; output.name == "loss")
      return std::max<uint64_t>(program::getBytes(type) / program::getElementBytes(type.element), 1);
  return 1;
}

/// One step has all but the first dim, which all have where there are several.
Status DataSet::splitSteps(Column &column) const {
  if (steps == 1)
    return program::kGood;
  std::vector<int64_t> &shape = column.type.shape;
  if (shape.empty() || uint64_t(shape.front()) != steps)
    return makeError("the program gives ", steps, " losses, and takes ", inQuotes(column.input->name), " as ",
                     format(column.type), ": not as many batches");
  shape.erase(shape.begin());
  return program::kGood;
}

/// Columns first, one for each input that is given at each call; then what the files have for them.
Result<DataSet> DataSet::open(const std::string &path, const program::Program &program) {
  DataSet data;
  data.steps = countStepsPerCall(program);
  const program::Variant &variant = program.variants.front();
  for (uint32_t i = 0; i < variant.inputs.size(); ++i) {
    auto isOf = [&](const auto &each) { return each.input == i; };
    if (std::any_of(variant.states.begin(), variant.states.end(), isOf))
      continue;
    Column &column = data.columns.emplace_back();
    column.input = &variant.inputs[i];
    column.type = program.types[variant.inputs[i].type];
    auto range = std::find_if(variant.ranges.begin(), variant.ranges.end(), isOf);
    if (range != variant.ranges.end())
      column.range = *range;
    if (Status error = data.splitSteps(column))
      return *error;
  }
  struct stat status;
  Status error;
  if (stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    error = data.openFile(path);
  } else {
    std::vector<std::string> shards = listFiles(path, ".npz"), arrays = listFiles(path, ".npy");
    for (size_t i = 0; i < shards.size() && !error; ++i)
      error = data.openFile(path + "/" + shards[i]);
    // An array of its own is all of its samples: with shards of it there, too, they would be counted twice.
    for (const Column &column : data.columns)
      if (!error && !column.chunks.empty() && std::count(arrays.begin(), arrays.end(), column.input->name + ".npy"))
        error = makeError(printable(path), " has ", inQuotes(column.input->name), " twice: in .npz files, and as ",
                          printable(column.input->name), ".npy");
    if (!error)
      error = data.openArrays(path, arrays);
  }
  if (!error)
    error = data.check(path);
  if (error)
    return *error;
  return data;
}

/// By itself: rows as those of the input, in elements that it takes.
Status DataSet::checkColumn(const Column &column) const {
  const program::Type &type = column.type;
  std::string name = inQuotes(column.input->name);
  if (column.chunks.empty()) {
    std::string names;
    for (const Column &other : columns)
      if (!other.chunks.empty())
        names += concat(names.empty() ? "" : ", ", inQuotes(other.input->name));
    for (const std::string &other : unknown)
      names += concat(names.empty() ? "" : ", ", inQuotes(other));
    return makeError("the data has no ", name, "; it has ", names.empty() ? "no arrays" : names,
                     ": name the array so, or say 'labels: ", unknown.empty() ? "NAME" : printable(unknown.front()),
                     "'");
  }
  bool isAlike = takes(type.element, column.element) && column.shape.size() == type.shape.size() &&
                 (type.shape.empty() || std::equal(type.shape.begin() + 1, type.shape.end(), column.shape.begin() + 1));
  if (isAlike)
    return program::kGood;
  std::vector<int64_t> wanted = type.shape;
  if (!wanted.empty() && !column.shape.empty())
    wanted.front() = column.shape.front();
  std::string shape = format(program::Type{type.element, wanted, {}});
  return makeError(name, " is ", format(program::Type{column.element, column.shape, {}}), ", expected ",
                   describeElement(type.element), " ", shape.substr(shape.find('[')));
}

/// All together: as many samples of each, as many of each in a batch.
Status DataSet::check(const std::string &path) {
  const Column *first = nullptr;
  for (const Column &column : columns) {
    if (Status error = checkColumn(column))
      return error;
    if (column.shape.empty())
      continue;
    first = first ? first : &column;
    if (column.shape.front() != first->shape.front())
      return makeError(inQuotes(first->input->name), " has ", first->shape.front(), " samples, ",
                       inQuotes(column.input->name), " ", column.shape.front());
    if (column.type.shape.front() != first->type.shape.front())
      return makeError("a batch of ", inQuotes(first->input->name), " is ", first->type.shape.front(), " samples, of ",
                       inQuotes(column.input->name), " ", column.type.shape.front());
  }
  if (!first)
    return makeError("the program takes no samples: none of its inputs has a batch");
  samples = uint64_t(first->shape.front());
  batch = uint64_t(first->type.shape.front());
  if (batch == 0 || samples < batch)
    return makeError(printable(path), " has ", samples, " samples, a batch is ", batch);
  return program::kGood;
}

//===----------------------------------------------------------------------===//
// Batches
//===----------------------------------------------------------------------===//

/// Calls `function` with a number of that type.
template <typename Function> static void dispatchInteger(Element element, Function function) {
  switch (element) {
  case Element::I8:
    return function(int8_t());
  case Element::I16:
    return function(int16_t());
  case Element::I32:
    return function(int32_t());
  case Element::UI8:
    return function(uint8_t());
  case Element::UI16:
    return function(uint16_t());
  case Element::UI32:
    return function(uint32_t());
  case Element::UI64:
    return function(uint64_t());
  default:
    return function(int64_t());
  }
}

/// As i64; unsigned numbers beyond become negative, which nobody can look up.
static std::vector<int64_t> readIntegers(Element element, const char *from, uint64_t count) {
  std::vector<int64_t> numbers(count);
  dispatchInteger(element, [&](auto kind) {
    for (uint64_t i = 0; i < count; ++i) {
      std::memcpy(&kind, from + i * sizeof(kind), sizeof(kind));
      numbers[i] = int64_t(kind);
    }
  });
  return numbers;
}

/// Names the sample, which the executor does not know.
Status DataSet::checkRange(const Column &column, uint64_t sample, const char *elements, uint64_t count) const {
  if (!column.range)
    return program::kGood;
  for (int64_t number : readIntegers(column.element, elements, count)) {
    if (number >= column.range->least && number <= column.range->most)
      continue;
    if (column.input->name == "labels")
      return makeError("label ", number, " of sample ", sample, " is not one of ", column.range->most + 1,
                       " classes; 'ignore: ", number, "' passes over it");
    return makeError(inQuotes(column.input->name), " is ", number, " in sample ", sample, ", expected ",
                     column.range->least, " to ", column.range->most);
  }
  return program::kGood;
}

/// Row by row, `times` batches; integers that the program wants in another width one by one.
Status DataSet::fill(Column &column, const std::vector<uint64_t> &which, uint64_t times) {
  uint64_t rows = column.shape.empty() ? times : which.size(), bytes = times * program::getBytes(column.type);
  uint64_t size = program::getElementBytes(column.element),
           count = bytes / program::getElementBytes(column.type.element);
  uint64_t rowElements = rows ? count / rows : 0;
  column.batch.resize(bytes);
  char *to = column.batch.data();
  for (uint64_t row = 0; row < rows; ++row) {
    uint64_t sample = column.shape.empty() ? 0 : which[row], at = sample;
    const Chunk *chunk = column.chunks.data();
    for (; at >= chunk->samples; ++chunk)
      at -= chunk->samples;
    const char *from = chunk->data + at * rowElements * size;
    if (Status error = checkRange(column, sample, from, rowElements))
      return error;
    if (column.element == column.type.element) {
      std::memcpy(to, from, rowElements * size);
      to += rowElements * size;
      continue;
    }
    for (int64_t number : readIntegers(column.element, from, rowElements)) {
      bool isNarrow = column.type.element == Element::I32;
      if (isNarrow && (number < std::numeric_limits<int32_t>::min() || number > std::numeric_limits<int32_t>::max()))
        return makeError(inQuotes(column.input->name), " is ", number, " in sample ", sample, ", which is not an i32");
      auto narrow = int32_t(number);
      std::memcpy(to, isNarrow ? static_cast<const void *>(&narrow) : &number, isNarrow ? 4 : 8);
      to += isNarrow ? 4 : 8;
    }
  }
  return program::kGood;
}

Result<std::vector<cleave::runtime::Argument>> DataSet::read(const std::vector<uint64_t> &which) {
  std::vector<runtime::Argument> arguments;
  uint64_t times = which.size() / batch;
  for (Column &column : columns) {
    if (Status error = fill(column, which, times))
      return *error;
    std::vector<int64_t> shape = column.type.shape;
    if (times > 1)
      shape.insert(shape.begin(), int64_t(times));
    arguments.push_back({column.input->name, column.type.element, shape, column.batch.data()});
  }
  return arguments;
}
