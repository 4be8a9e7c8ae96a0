# Prints what bash offers at the end of each line of standard input, as the completion script has it.
eval "$(cleave completion bash)"
while IFS= read -r COMP_LINE; do
  COMP_POINT=${#COMP_LINE}
  COMPREPLY=()
  _cleave
  echo "$COMP_LINE|${COMPREPLY[*]}"
done
