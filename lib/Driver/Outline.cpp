//===- Outline.cpp - what inspect prints ----------------------------------===//
//
// A model of forty layers has forty parameters that are the same but for a number in their names. They share a line, in
// which the numbers stand in braces, as a plan's patterns have them, or as a star where they are many:
//
//   encoder.layer.{0,1}.query.weight   f32[64, 64]   2 x 16.38 kB   node:/encoder/layer.{0,1}/query/MatMul#1
//
//===----------------------------------------------------------------------===//
#include "Outline.h"

#include "cleave/Pipelines/Report.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave;
using namespace cleave::driver;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

void Table::print(llvm::raw_ostream &os) const {
  constexpr size_t widest = 64;
  std::vector<size_t> widths;
  for (const auto &cells : rows)
    for (auto [column, cell] : llvm::enumerate(cells)) {
      widths.resize(std::max(widths.size(), column + 1));
      widths[column] = std::max(widths[column], std::min(cell.size(), widest));
    }
  for (const auto &cells : rows) {
    size_t position = 0, start = 2;
    for (auto [cell, width] : llvm::zip(cells, widths)) {
      if (position + 2 > start) {
        os << '\n';
        position = 0;
      }
      if (!cell.empty()) {
        os.indent(start - position) << cell;
        position = start + cell.size();
      }
      start += width + 2;
    }
    os << '\n';
  }
}

//===----------------------------------------------------------------------===//
// Equal layers
//===----------------------------------------------------------------------===//

namespace {

/// Text and the numbers in it, one text more than numbers. A number behind `#` is an operand's, and part of the text.
struct Numbered {
  explicit Numbered(StringRef name);
  std::vector<std::string> texts, numbers;
};

/// Parameters that share a line.
struct Group {
  const TensorOutline *first;
  Numbered name, uses;
  std::vector<Numbered> otherNames, otherUses;
  /// The number of the name that differs; nothing for one parameter.
  std::optional<size_t> differing;
};

} // namespace

Numbered::Numbered(StringRef name) : texts(1) {
  for (size_t i = 0; i < name.size();) {
    size_t digits = name.substr(i).find_if_not(llvm::isDigit);
    digits = std::min(digits, name.size() - i);
    if (digits && !(i && name[i - 1] == '#')) {
      numbers.push_back(name.substr(i, digits).str());
      texts.emplace_back();
    } else {
      digits = std::max<size_t>(digits, 1);
      texts.back() += name.substr(i, digits);
    }
    i += digits;
  }
}

/// The only place where two names of equal texts differ; nothing if there are more, or none.
static std::optional<size_t> findDifference(const Numbered &a, const Numbered &b) {
  std::optional<size_t> found;
  for (size_t i = 0; i < a.numbers.size(); ++i)
    if (a.numbers[i] != b.numbers[i]) {
      if (found)
        return std::nullopt;
      found = i;
    }
  return found;
}

/// `layer.{0,1}.weight`.
static std::string join(const Numbered &first, llvm::ArrayRef<Numbered> others) {
  constexpr size_t longest = 16;
  std::string text = first.texts.front();
  for (size_t i = 0; i < first.numbers.size(); ++i) {
    std::vector<std::string> numbers{first.numbers[i]};
    for (const Numbered &other : others)
      if (!llvm::is_contained(numbers, other.numbers[i]))
        numbers.push_back(other.numbers[i]);
    std::string list = llvm::join(numbers, ",");
    text += numbers.size() == 1 ? list : list.size() <= longest ? "{" + list + "}" : "*";
    text += first.texts[i + 1];
  }
  return text;
}

static std::vector<Group> groupParameters(const std::vector<TensorOutline> &parameters) {
  std::vector<Group> groups;
  llvm::StringMap<std::vector<size_t>> byText; // groups that are alike but for numbers
  for (const TensorOutline &parameter : parameters) {
    Numbered name(parameter.name), uses(llvm::join(parameter.uses, " "));
    std::vector<size_t> &alike =
        byText[llvm::join(name.texts, "\n") + "\n\n" + parameter.type + "\n\n" + llvm::join(uses.texts, "\n")];
    auto found = llvm::find_if(alike, [&](size_t index) {
      std::optional<size_t> place = findDifference(groups[index].name, name);
      return place && groups[index].differing.value_or(*place) == *place;
    });
    if (found == alike.end()) {
      alike.push_back(groups.size());
      groups.push_back({&parameter, std::move(name), std::move(uses), {}, {}, std::nullopt});
      continue;
    }
    Group &group = groups[*found];
    group.differing = findDifference(group.name, name);
    group.otherNames.push_back(std::move(name));
    group.otherUses.push_back(std::move(uses));
  }
  return groups;
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static void printSignature(llvm::raw_ostream &os, StringRef title, const std::vector<TensorOutline> &tensors) {
  os << title << ":\n";
  Table table;
  for (const TensorOutline &tensor : tensors)
    table.add({tensor.name, tensor.type});
  table.print(os);
}

void Outline::print(llvm::raw_ostream &os, bool isLong) const {
  printSignature(os, "inputs", inputs);
  printSignature(os, "outputs", outputs);
  os << opsTitle << '\n';
  Table opTable, parameterTable;
  for (const auto &[name, count] : ops)
    opTable.add({name, std::to_string(count)});
  opTable.print(os);
  int64_t bytes = 0;
  for (const TensorOutline &parameter : parameters) {
    bytes += parameter.bytes;
    if (isLong)
      parameterTable.add(
          {parameter.name, parameter.type, formatBytes(parameter.bytes), llvm::join(parameter.uses, " ")});
  }
  os << llvm::formatv("parameters: {0}, {1} bytes ({2})\n", parameters.size(), bytes, formatBytes(bytes));
  for (const Group &group : isLong ? std::vector<Group>() : groupParameters(parameters)) {
    size_t count = group.otherNames.size() + 1;
    parameterTable.add({join(group.name, group.otherNames), group.first->type,
                        (count > 1 ? std::to_string(count) + " x " : "") + formatBytes(group.first->bytes),
                        join(group.uses, group.otherUses)});
  }
  parameterTable.print(os);
}
