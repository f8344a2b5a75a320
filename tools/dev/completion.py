"""The completion script for bash: ./dev and the compiler's tools."""

from __future__ import annotations

SCRIPT = """\
# Completion of torch_ltc's commands: source <(./dev completion)
_torch_ltc_dev() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" command="${{COMP_WORDS[1]:-}}"
  if (( COMP_CWORD == 1 )); then
    COMPREPLY=($(compgen -W "{commands}" -- "$word"))
  elif [[ "$command" == test ]]; then
    COMPREPLY=($(compgen -W "{suites} --full --" -- "$word"))
  elif [[ "$command" == lint ]]; then
    COMPREPLY=($(compgen -W "--fix" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
# Options are read once from each tool's own list.
declare -gA _torch_ltc_options
_torch_ltc_tool() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" tool="${{COMP_WORDS[0]}}"
  if [[ "$word" == -* ]]; then
    if [[ -z "${{_torch_ltc_options[$tool]:-}}" ]]; then
      _torch_ltc_options[$tool]="$("$tool" --help-hidden 2>/dev/null |
        grep -oE '^ +--?[a-z][a-z0-9-]+' | sed -E 's/^ +-+/--/' | sort -u)"
    fi
    COMPREPLY=($(compgen -W "${{_torch_ltc_options[$tool]}}" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -o default -F _torch_ltc_dev ./dev dev
complete -o default -F _torch_ltc_tool ltc-opt ltc-run ltc-reduce ltc-lsp-server
"""


def script(commands: list[str], suites: list[str]) -> str:
    return SCRIPT.format(commands=" ".join(commands), suites=" ".join(suites))
