//===- Completion.cpp - what can be typed next ----------------------------===//
//
// The scripts only hand the words of the line to `cleave completion SHELL`, which knows what can follow. Where it knows
// nothing, the shell offers files.
//
//===----------------------------------------------------------------------===//
#include "OptionTable.h"

#include "llvm/ADT/STLExtras.h"

using namespace cleave::driver;
using llvm::ArrayRef;
using llvm::StringRef;
using llvm::opt::Option;

static constexpr StringRef kShells[] = {"bash", "zsh"};

/// bash cuts its words at '=' too, and replaces only what stands behind it: the line is cut anew, at blanks.
static constexpr llvm::StringLiteral kBashScript = R"sh(# Completion for bash: eval "$(cleave completion bash)"
_cleave() {
  local line="${COMP_LINE:0:COMP_POINT}" words IFS=$' \t\n'
  read -ra words <<< "$line"
  [[ $line == *[[:blank:]] ]] && words+=("")
  IFS=$'\n'
  COMPREPLY=($("${words[0]}" completion bash "${words[@]:1}" 2>/dev/null))
}
complete -o default -F _cleave cleave
)sh";

static constexpr llvm::StringLiteral kZshScript = R"sh(#compdef cleave
# Completion for zsh: eval "$(cleave completion zsh)"
_cleave() {
  local -a found
  found=("${(@f)$("${words[1]}" completion zsh "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -z "$found" ]]; then
    compset -P '*='
    _files
    return
  fi
  [[ "${words[CURRENT]}" == --*=* ]] && compset -P '*='
  compadd -a found
}
# As a file on fpath this is the function's first call.
if [[ "$funcstack[1]" == _cleave ]]; then _cleave; else compdef _cleave cleave; fi
)sh";

ArrayRef<StringRef> cleave::driver::getShells() { return kShells; }

void cleave::driver::printCompletionScript(llvm::raw_ostream &os, StringRef shell) {
  assert(llvm::is_contained(getShells(), shell) && "no script for this shell");
  os << (shell == "bash" ? kBashScript : kZshScript);
}

/// The option that `word` names, of `command`.
static std::optional<Option> findOption(StringRef command, StringRef word) {
  for (const OptionGroup &group : getOptionGroups(command))
    for (const Option &option : group.options)
      if (option.getPrefixedName() == word)
        return option;
  return std::nullopt;
}

/// What can stand for `last`, and what of it is there already.
static std::vector<StringRef> findCandidates(ArrayRef<StringRef> words, StringRef &last) {
  std::vector<StringRef> candidates;
  if (words.empty()) {
    for (const auto &command : getOptionTable().getSubCommands())
      candidates.push_back(command.Name);
    llvm::append_range(candidates, ArrayRef<StringRef>{"--help", "--version"});
    return candidates;
  }
  StringRef command = words.front();
  if (command == "completion")
    return words.size() == 1 ? std::vector<StringRef>(std::begin(kShells), std::end(kShells)) : candidates;
  if (!findCommand(command) || llvm::is_contained(words, "--"))
    return candidates;
  if (std::optional<Option> option = findOption(command, words.back());
      option && option->getKind() != Option::FlagClass)
    return getWords(*option);
  if (auto [name, start] = last.split('='); last.starts_with("--") && last.contains('=')) {
    std::optional<Option> option = findOption(command, name);
    last = start;
    return option ? getWords(*option) : candidates;
  }
  if (last.starts_with("-"))
    for (const OptionGroup &group : getOptionGroups(command))
      for (const Option &option : group.options)
        candidates.push_back(option.getPrefixedName());
  return candidates;
}

void cleave::driver::printCompletions(llvm::raw_ostream &os, ArrayRef<StringRef> words) {
  StringRef last = words.back();
  for (StringRef candidate : findCandidates(words.drop_back(), last))
    if (candidate.starts_with(last))
      os << candidate << '\n';
}
