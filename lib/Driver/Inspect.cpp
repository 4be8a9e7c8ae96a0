//===- Inspect.cpp - what is in a model -----------------------------------===//
//
// What the library says of a model (Outline.h), in columns:
//
//   modules: parameters, bytes, floating-point operations in contractions, their own parameters
//     model            11,064     44.26 kB      9.95e+05
//       embed_tokens   1,728      6.91 kB                     f32[72, 24]
//       layers.{0,1}   2 x 4,656  2 x 18.62 kB  2 x 4.98e+05
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Outline.h"

#include "cleave/Driver/Session.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave;
using namespace cleave::driver;

namespace {
/// Cells of one line each, printed in columns: as wide as the widest cell, but no wider than a limit. A cell that is
/// longer ends its line, and the next one starts below, in its column.
class Table {
public:
  void add(std::vector<std::string> cells) { rows.push_back(std::move(cells)); }
  void print(llvm::raw_ostream &os) const;

private:
  std::vector<std::vector<std::string>> rows;
};
} // namespace

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

/// Behind all else of a line, so that what stood there before is where it was.
static std::string formatHeld(const std::string &nodes, const std::string &holds) {
  return holds.empty() ? nodes : nodes + (nodes.empty() ? "" : "  ") + "holds " + holds;
}

/// Name, type and, where `nodes`, nodes of each.
static void print(llvm::raw_ostream &os, llvm::StringRef title, llvm::ArrayRef<TensorOutline> tensors,
                  bool nodes = false) {
  os << title << ":\n";
  Table table;
  for (const TensorOutline &tensor : tensors) {
    std::vector<std::string> cells{tensor.name, tensor.type};
    if (nodes)
      cells.push_back(llvm::join(tensor.nodes, " "));
    else if (!tensor.holds.empty())
      cells.push_back(formatHeld("", tensor.holds));
    table.add(std::move(cells));
  }
  table.print(os);
}

/// `12 x 36.99 kB`.
static std::string formatTimes(size_t count, const std::string &text) {
  return count > 1 ? std::to_string(count) + " x " + text : text;
}

/// The tree; figures have all that is in a module, types what it reads itself.
static void printModules(llvm::raw_ostream &os, llvm::ArrayRef<ModuleOutline> modules, bool hasFlops) {
  if (modules.empty())
    return;
  os << "modules: parameters, bytes" << (hasFlops ? ", floating-point operations in contractions" : "")
     << ", their own parameters\n";
  Table table;
  for (const ModuleGroup &group : groupModules(modules)) {
    std::vector<std::string> cells{std::string(2 * size_t(group.depth), ' ') + group.name,
                                   formatTimes(group.count, llvm::formatv("{0:n}", group.elements)),
                                   formatTimes(group.count, formatBytes(group.bytes))};
    if (hasFlops)
      cells.push_back(group.flops > 0 ? formatTimes(group.count, llvm::formatv("{0:e2}", group.flops)) : "");
    cells.push_back(llvm::join(group.types, ", "));
    table.add(std::move(cells));
  }
  table.print(os);
}

/// Each on a line of its own, or equal layers together. Those of modules have their place in the tree, and what else is constant is no
/// parameter to whoever knows the modules.
static void printParameters(llvm::raw_ostream &os, llvm::ArrayRef<TensorOutline> parameters, bool isLong,
                            bool hasModules) {
  int64_t bytes = 0;
  std::vector<TensorOutline> shown;
  for (const TensorOutline &parameter : parameters)
    if (!hasModules || (parameter.module.empty() && !parameter.isConstant))
      shown.push_back(parameter);
  Table table;
  for (const TensorOutline &parameter : parameters) {
    bytes += parameter.bytes;
    if (isLong)
      table.add({parameter.name, parameter.type, formatBytes(parameter.bytes),
                 formatHeld(llvm::join(parameter.nodes, " "), parameter.holds)});
  }
  for (const ParameterGroup &group : isLong ? std::vector<ParameterGroup>() : groupParameters(shown))
    table.add({group.name, group.type,
               (group.count > 1 ? std::to_string(group.count) + " x " : "") + formatBytes(group.bytesEach),
               formatHeld(group.nodes, group.holds)});
  os << llvm::formatv("parameters: {0}, {1} bytes ({2})\n", parameters.size(), bytes, formatBytes(bytes));
  table.print(os);
}

ExitCode cleave::driver::inspectCommand(Session &session) {
  if (std::optional<ExitCode> done = inspectProgram(session))
    return *done;
  std::optional<Outline> outline = makeOutline(session);
  if (!outline)
    return session.getExitCode();
  llvm::raw_ostream &os = llvm::outs();
  bool isLong = session.getOptions().verbose, isImported = outline->open.empty();
  print(os, "inputs", outline->inputs);
  print(os, "outputs", outline->outputs);
  if (isImported)
    os << llvm::formatv("ops: {0}, {1:e2} floating-point operations in contractions\n", outline->countOps(),
                        outline->flops);
  else
    os << "ONNX nodes: " << outline->countOps() << '\n';
  Table ops;
  for (const auto &[name, count] : outline->ops)
    ops.add({name, std::to_string(count)});
  ops.print(os);
  printModules(os, outline->modules, isImported);
  printParameters(os, outline->parameters, isLong, !outline->modules.empty());
  if (!isImported)
    os << "not known without " << outline->open
       << ": other shapes, ops after import, their floating-point operations, and what cannot be imported\n";
  else if (isLong)
    print(os, "tensors", outline->tensors, /*nodes=*/true);
  return kDone;
}
