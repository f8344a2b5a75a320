#!/bin/sh
# Compares the project's passes in --help with the registered passes.
passes() { grep -oE -e '--ltc-mlir-[a-z-]+' | sort -u; }
ltc-opt --help-hidden | passes > "$1.all"
ltc-opt --help | passes > "$1.shown"
diff "$1.all" "$1.shown" && echo "all $(grep -c . "$1.all") passes"
# The line of a pass without a description would end after the pass's name.
ltc-opt --help | grep -E -e '--ltc-mlir-[a-z-]+ +$' && echo "nameless"
exit 0
