//===- OptionArguments.cpp - what stands behind an option -----------------===//
//
// Each reader returns what is wrong with an argument, or an empty string. Which one reads is said by the type of the member that an option
// fills.
//
//===----------------------------------------------------------------------===//
#include "OptionTable.h"

#include "cleave/Plan/NamePattern.h"
#include "cleave/Plan/Plan.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace cleave;
using namespace cleave::driver;
using llvm::StringRef;
using llvm::opt::Option;

static std::string read(bool &field, StringRef) {
  field = true;
  return "";
}

static std::string read(std::string &field, StringRef text) {
  field = text.str();
  return "";
}

static std::string read(llvm::SmallVector<std::string> &field, StringRef text) {
  field.push_back(text.str());
  return "";
}

static std::string read(uint64_t &field, StringRef text) {
  return text.getAsInteger(10, field) ? "expected a number" : "";
}

/// A tolerance.
static std::string read(std::optional<double> &field, StringRef text) {
  double number;
  if (text.getAsDouble(number) || !(number >= 0))
    return "expected a number that is not negative";
  field = number;
  return "";
}

/// Numbers behind names; which names there are, their user knows.
static std::string read(NamedNumbers &field, StringRef text) {
  llvm::SmallVector<StringRef> entries;
  text.split(entries, ',');
  for (StringRef entry : entries) {
    auto [name, number] = entry.split('=');
    double value;
    if (name.empty() || number.getAsDouble(value) || !std::isfinite(value))
      return llvm::formatv("'{0}' is not of the form NAME=NUMBER", entry);
    if (!field.try_emplace(name.str(), value).second)
      return llvm::formatv("'{0}' is given twice", name);
  }
  return "";
}

/// A size, or numbers behind names: which of both a command takes is known later.
static std::string read(MemoryOption &field, StringRef text) {
  field.isLeast = text == "least";
  if (field.isLeast)
    return "";
  if (text.contains('='))
    return read(field.actions, text);
  if (llvm::isDigit(text.back()))
    return llvm::formatv("a size has a unit: {0}GB, {0}GiB", text);
  field.bytes = spmd::parseBytes(text.str()).value_or(0);
  return field.bytes > 0 ? "" : "expected a size, such as 72GB or 1.5GiB, or least";
}

/// `4`, or `1..8`.
static std::string read(spmd::CountRange &field, StringRef text) {
  auto [least, most] = text.contains("..") ? text.split("..") : std::pair(text, text);
  if (least.getAsInteger(10, field.least) || most.getAsInteger(10, field.most) || field.least < 1 ||
      field.most < field.least)
    return "expected a number, or a range of numbers such as 1..8";
  return "";
}

/// A time with its unit.
static std::string read(Duration &field, StringRef text) {
  static constexpr std::pair<llvm::StringLiteral, double> kUnits[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  StringRef number = text.rtrim("abcdefghijklmnopqrstuvwxyz"), unit = text.drop_front(number.size());
  for (auto [word, factor] : kUnits)
    if (unit == word && !number.getAsDouble(field.ns) && std::isfinite(field.ns) && field.ns > 0) {
      field.ns *= factor;
      return "";
    }
  return "expected a time with its unit, such as 50ms or 200us";
}

static std::string read(std::vector<double> &field, StringRef text) {
  llvm::SmallVector<StringRef> entries;
  text.split(entries, ',');
  for (StringRef entry : entries)
    if (entry.getAsDouble(field.emplace_back()) || !std::isfinite(field.back()) || field.back() < 0)
      return llvm::formatv("'{0}' is not a number that is not negative", entry);
  return "";
}

/// How many parts something is split into; 0 leaves it to the cost model.
static std::string read(std::optional<int64_t> &field, StringRef text) {
  int64_t number = 0;
  if (text != "auto" && (text.getAsInteger(10, number) || number < 1))
    return "expected auto, or a number of parts";
  field = number;
  return "";
}

/// Sizes of dims: `batch=8,seq=128`; a number behind a comma is another size of the same dim.
static std::string read(DimSizes &field, StringRef text) {
  llvm::SmallVector<StringRef> entries;
  text.split(entries, ',');
  std::map<std::string, std::vector<int64_t>> read;
  StringRef name;
  for (StringRef entry : entries) {
    auto [left, number] = entry.rsplit('=');
    bool isNamed = left.size() < entry.size();
    name = isNamed ? left : name;
    int64_t size;
    if (name.empty() || (isNamed ? number : entry).getAsInteger(10, size) || size < 0)
      return llvm::formatv("'{0}' is not of the form NAME=SIZE", entry);
    std::vector<int64_t> &sizes = read[name.str()];
    if (isNamed && !sizes.empty() && sizes.back() != size)
      return llvm::formatv("'{0}' is given as {1} and as {2}", name, sizes.back(), size);
    if (!llvm::is_contained(sizes, size))
      sizes.push_back(size);
  }
  for (const auto &[name, sizes] : read) {
    auto [it, isNew] = field.sizes.try_emplace(name, sizes);
    if (!isNew && it->second != sizes)
      return llvm::formatv("'{0}' is given as {1} and as {2}", name, it->second.front(), sizes.front());
  }
  return "";
}

std::vector<std::map<std::string, int64_t>> DimSizes::getVariants() const {
  std::vector<std::map<std::string, int64_t>> variants(1);
  for (const auto &[name, list] : sizes) {
    std::vector<std::map<std::string, int64_t>> longer;
    for (const std::map<std::string, int64_t> &variant : variants)
      for (int64_t size : list)
        longer.emplace_back(variant).emplace(name, size);
    variants = std::move(longer);
  }
  return variants;
}

/// Shapes of inputs.
static std::string read(std::map<std::string, std::vector<int64_t>> &field, StringRef text) {
  auto [name, dims] = text.rsplit('=');
  llvm::SmallVector<StringRef> sizes;
  dims.split(sizes, 'x');
  std::vector<int64_t> shape;
  for (StringRef size : sizes)
    if (name.empty() || size.getAsInteger(10, shape.emplace_back()) || shape.back() < 0)
      return llvm::formatv("'{0}' is not of the form NAME=8x128", text);
  auto [it, isNew] = field.try_emplace(name.str(), shape);
  return isNew || it->second == shape ? "" : llvm::formatv("two shapes for '{0}'", name).str();
}

template <typename T> static std::vector<StringRef> wordsOf(const T &) { return {}; }
static std::vector<StringRef> wordsOf(Color) { return {std::begin(kColorWords), std::end(kColorWords)}; }
static std::vector<StringRef> wordsOf(CheckKind) { return {std::begin(kCheckWords), std::end(kCheckWords)}; }
static std::vector<StringRef> wordsOf(ExecutorKind) { return {std::begin(kExecutorWords), std::end(kExecutorWords)}; }
static std::vector<StringRef> wordsOf(Precision) { return {std::begin(kPrecisionWords), std::end(kPrecisionWords)}; }
static std::vector<StringRef> wordsOf(SampleOrder) {
  return {std::begin(kSampleOrderWords), std::end(kSampleOrderWords)};
}
static std::vector<StringRef> wordsOf(LibraryUse) { return {std::begin(kLibraryUseWords), std::end(kLibraryUseWords)}; }
static std::vector<StringRef> wordsOf(codegen::Allowed) {
  std::vector<StringRef> words;
  for (const codegen::AllowedTraits &allowed : codegen::kAllowed)
    words.push_back(allowed.word);
  return words;
}
static std::vector<StringRef> wordsOf(DeviceKind) {
  std::vector<StringRef> words;
  for (const driver::DeviceTraits &device : kDevices)
    words.push_back(device.word);
  return words;
}
static std::vector<StringRef> wordsOf(onnx::CollectiveOps) {
  return {std::begin(kCollectiveOpsWords), std::end(kCollectiveOpsWords)};
}
static std::vector<StringRef> wordsOf(std::optional<schedule::Placement>) {
  return {std::begin(kPlacementWords), std::end(kPlacementWords)};
}
static std::vector<StringRef> wordsOf(schedule::Effort) {
  return {std::begin(schedule::kEffortWords), std::end(schedule::kEffortWords)};
}
static std::vector<StringRef> wordsOf(std::optional<schedule::Effort>) { return wordsOf(schedule::Effort()); }
static std::vector<StringRef> wordsOf(schedule::MessageMode) {
  return {std::begin(schedule::kMessageModeWords), std::end(schedule::kMessageModeWords)};
}
static std::vector<StringRef> wordsOf(PlanObjective) {
  return {std::begin(kPlanObjectiveWords), std::end(kPlanObjectiveWords)};
}
static std::vector<StringRef> wordsOf(spmd::Optimize) {
  return {std::begin(spmd::kOptimizeWords), std::end(spmd::kOptimizeWords)};
}
static std::vector<StringRef> wordsOf(spmd::AttentionMethod) {
  return {std::begin(spmd::kAttentionWords), std::end(spmd::kAttentionWords)};
}
static std::vector<StringRef> wordsOf(Phase) {
  std::vector<StringRef> words;
  for (const PhaseName &name : getPhaseNames())
    words.push_back(name.word);
  return words;
}

/// One of an enum's words, which stand in the order of its values.
template <typename Enum> static std::string read(Enum &field, StringRef text) {
  static_assert(std::is_enum_v<Enum>, "a type of options without a reader");
  std::vector<StringRef> words = wordsOf(field);
  size_t index = llvm::find(words, text) - words.begin();
  if (index == words.size())
    return "expected one of " + llvm::join(words, ", ") + suggestNames(text, words);
  field = static_cast<Enum>(index);
  return "";
}

/// The first of the words is none.
static std::string read(std::optional<schedule::Placement> &field, StringRef text) {
  std::vector<StringRef> words = wordsOf(field);
  if (!llvm::is_contained(words, text))
    return "expected one of " + llvm::join(words, ", ") + suggestNames(text, words);
  field = schedule::parsePlacement(text);
  return "";
}

static std::string read(std::optional<schedule::Effort> &field, StringRef text) { return read(field.emplace(), text); }

/// Whether an option says all of its field, so that a second one would take back what the first says.
template <typename T> static bool saysAll(const T &) { return true; }
static bool saysAll(bool) { return false; }
static bool saysAll(const llvm::SmallVector<std::string> &) { return false; }
static bool saysAll(const DimSizes &) { return false; }
static bool saysAll(const NamedNumbers &) { return false; }
static bool saysAll(const MemoryOption &) { return false; }
static bool saysAll(const spmd::CountRange &) { return false; }
static bool saysAll(const Duration &) { return false; }
static bool saysAll(const std::map<std::string, std::vector<int64_t>> &) { return false; }

static std::vector<StringRef> wordsOf(const Emit &) {
  std::vector<StringRef> words = wordsOf(Phase());
  llvm::append_range(words, kEmitWords);
  return words;
}

/// Values are decided once propagated; what comes after is not said of tensors of the model.
static std::string read(Emit &field, StringRef text) {
  if (auto form = llvm::find(kEmitWords, text); form != std::end(kEmitWords)) {
    field.form = static_cast<EmitForm>(1 + (form - std::begin(kEmitWords)));
    field.phase = Phase::Propagated;
    return "";
  }
  std::vector<StringRef> words = wordsOf(field);
  return llvm::is_contained(words, text) ? read(field.phase.emplace(), text)
                                         : "expected one of " + llvm::join(words, ", ") + suggestNames(text, words);
}

/// Calls `use` with the member of `options` that an option fills.
template <typename Use> static auto withField(Options &options, unsigned option, Use use) {
  switch (option) {
#define OPTION_WITH_MARSHALLING(PREFIX, NAME, ID, KIND, GROUP, ALIAS, ALIASARGS, FLAGS, VISIBILITY, PARAM, HELP,       \
                                HELPS, METAVAR, VALUES, COMMANDS, PARSE, EMIT, FIELD, ...)                             \
  case OPT_##ID:                                                                                                       \
    return use(options.FIELD);
#include "Options.inc"
#undef OPTION_WITH_MARSHALLING
  default:
    return decltype(use(options.quiet))();
  }
}

/// Asked of the member that the option fills, so that no list repeats its words.
std::vector<StringRef> cleave::driver::getWords(const Option &option) {
  Options options;
  return withField(options, option.getID(), [](const auto &field) { return wordsOf(field); });
}

std::string cleave::driver::readArgument(Options &options, const Option &option, StringRef argument) {
  return withField(options, option.getID(), [=](auto &field) -> std::string { return read(field, argument); });
}

bool cleave::driver::saysAllOfIt(const Option &option) {
  Options options;
  return withField(options, option.getID(), [](const auto &field) { return saysAll(field); });
}
