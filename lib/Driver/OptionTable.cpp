//===- OptionTable.cpp - commands and options as data ---------------------===//
//
// The tables that TableGen makes of Options.td, handed to LLVM's option library, and its options by group.
//
// TableGen writes one file, read several times here under different macros: the strings, the prefixes, the commands,
// and one row for each option with the commands that take it.
//
//===----------------------------------------------------------------------===//
#include "OptionTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave::driver;
using llvm::StringRef;
using llvm::opt::DefaultVis;
using llvm::opt::HelpHidden;
using llvm::opt::Option;
using llvm::opt::OptTable;

#define OPTTABLE_STR_TABLE_CODE
#include "Options.inc"
#undef OPTTABLE_STR_TABLE_CODE

#define OPTTABLE_PREFIXES_TABLE_CODE
#include "Options.inc"
#undef OPTTABLE_PREFIXES_TABLE_CODE

#define OPTTABLE_SUBCOMMAND_IDS_TABLE_CODE
#include "Options.inc"
#undef OPTTABLE_SUBCOMMAND_IDS_TABLE_CODE

#define OPTTABLE_SUBCOMMANDS_CODE
#include "Options.inc"
#undef OPTTABLE_SUBCOMMANDS_CODE

static constexpr OptTable::Info kOptions[] = {
#define OPTION(...) LLVM_CONSTRUCT_OPT_INFO(__VA_ARGS__),
#include "Options.inc"
#undef OPTION
};

namespace {
class CleaveOptTable : public llvm::opt::GenericOptTable {
public:
  CleaveOptTable()
      : GenericOptTable(OptionStrTable, OptionPrefixesTable, kOptions, /*IgnoreCase=*/false, OptionSubCommands,
                        OptionSubCommandIDsTable) {}
};
} // namespace

const OptTable &cleave::driver::getOptionTable() {
  static const CleaveOptTable table;
  return table;
}

const OptTable::SubCommand *cleave::driver::findCommand(StringRef name) {
  const auto *it = llvm::find_if(OptionSubCommands, [&](const auto &command) { return name == command.Name; });
  return it == std::end(OptionSubCommands) ? nullptr : it;
}

std::vector<OptionGroup> cleave::driver::getOptionGroups(StringRef command) {
  const OptTable &table = getOptionTable();
  std::vector<OptionGroup> groups;
  for (const OptTable::Info &group : kOptions) {
    if (group.Kind != Option::GroupClass)
      continue;
    OptionGroup entry{group.HelpText, {}};
    for (const OptTable::Info &info : kOptions)
      if (info.GroupID == group.ID && info.AliasID == OPT_INVALID && !(info.Flags & HelpHidden) &&
          (command.empty() || table.isValidForSubCommand(&info, command)))
        entry.options.push_back(table.getOption(info.ID));
    if (!entry.options.empty())
      groups.push_back(std::move(entry));
  }
  return groups;
}

std::string cleave::driver::listMarked(StringRef command, OptionFlag flag) {
  std::vector<std::string> names;
  for (const OptionGroup &group : getOptionGroups(command))
    for (const Option &option : group.options)
      if (option.hasFlag(flag))
        names.push_back(option.getPrefixedName().str());
  return llvm::join(names, ", ");
}

std::optional<std::string> cleave::driver::findIdle(const Options &options) {
  OptionFlag flag = options.command == "bench" ? OfBenchedProgram : OfInspectedProgram;
  for (unsigned id : options.given)
    if (!getOptionTable().getOption(id).hasFlag(flag))
      return llvm::formatv(
          "'{0}' is about models, and {1} is a program, which is compiled already: 'cleave {2}' takes {3} with one",
          getOptionTable().getOption(id).getPrefixedName(), options.compile.model, options.command,
          listMarked(options.command, flag));
  return std::nullopt;
}

std::string cleave::driver::formatUsage(const Option &option) {
  const char *argument = getOptionTable().getOptionMetaVar(option.getID());
  return option.getPrefixedName().str() + (argument ? " " + std::string(argument) : "");
}

std::string cleave::driver::formatHelp(const Option &option) {
  std::vector<StringRef> words = getWords(option);
  return option.getHelpText().str() + (words.empty() ? "" : ": " + llvm::join(words, ", "));
}
