//===- RankTable.cpp - numbers that differ between ranks ------------------===//
//
// Equal names stand for equal columns: a name tells the axes and the factor, or the two columns that were added.
//
//===----------------------------------------------------------------------===//
#include "RankTable.h"

#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Sharding/RankGroups.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

NumberAttr RankTable::get(int64_t base) { return NumberAttr::get(module.getContext(), base, ""); }

NumberAttr RankTable::get(ArrayRef<spmd::AxisAttr> axes, int64_t factor) {
  if (!mesh || factor == 0 || mesh.getRankGroups(axes).size() == 1)
    return get(0);
  std::string name = spmd::formatAxes(axes) + (factor == 1 ? "" : " * " + std::to_string(factor));
  auto [column, isNew] = columns.try_emplace(name);
  if (isNew) {
    spmd::RankGroups groups = mesh.getRankGroups(axes);
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank)
      column->second.push_back(groups.indexOf(rank) * factor);
  }
  return NumberAttr::get(module.getContext(), 0, name);
}

NumberAttr RankTable::add(NumberAttr a, NumberAttr b) {
  if (!b.hasColumn())
    return add(a, b.getBase());
  if (!a.hasColumn())
    return add(b, a.getBase());
  std::string name = (a.getColumn() + " + " + b.getColumn()).str();
  auto [column, isNew] = columns.try_emplace(name);
  if (isNew)
    for (auto [x, y] : llvm::zip_equal(columns.find(a.getColumn())->second, columns.find(b.getColumn())->second))
      column->second.push_back(x + y);
  return NumberAttr::get(module.getContext(), a.getBase() + b.getBase(), name);
}

int64_t RankTable::evaluate(NumberAttr number, int64_t rank) const {
  return number.getBase() + (number.hasColumn() ? columns.find(number.getColumn())->second[rank] : 0);
}

/// As printed, but for the quotes.
std::string RankTable::format(NumberAttr number) {
  std::string base = std::to_string(number.getBase());
  return !number.hasColumn() ? base : (number.getBase() == 0 ? "" : base + " + ") + number.getColumn().str();
}

/// What all ranks have alike is no column.
NumberAttr RankTable::getComputed(Twine name, function_ref<int64_t(int64_t)> compute) {
  Column numbers;
  for (int64_t rank = 0; rank < (mesh ? mesh.getNumRanks() : 1); ++rank)
    numbers.push_back(compute(rank));
  if (llvm::all_equal(numbers))
    return get(numbers.front());
  std::string text = name.str();
  columns.try_emplace(text, std::move(numbers));
  return NumberAttr::get(module.getContext(), 0, text);
}

NumberAttr RankTable::atMost(NumberAttr a, NumberAttr most) {
  return getComputed(format(a) + " up to " + format(most),
                     [&](int64_t rank) { return std::min(evaluate(a, rank), evaluate(most, rank)); });
}

NumberAttr RankTable::countBelow(NumberAttr end, NumberAttr start, int64_t size) {
  return getComputed(format(end) + " - (" + format(start) + ") up to " + Twine(size), [&](int64_t rank) {
    return std::clamp<int64_t>(evaluate(end, rank) - evaluate(start, rank), 0, size);
  });
}

void RankTable::store() {
  if (columns.empty())
    return;
  Builder builder(module.getContext());
  SmallVector<NamedAttribute> table;
  for (const auto &[name, column] : columns)
    table.push_back(builder.getNamedAttr(name, builder.getDenseI64ArrayAttr(column)));
  module->setAttr(ExecDialect::kRankTableAttr, builder.getDictionaryAttr(table));
}
