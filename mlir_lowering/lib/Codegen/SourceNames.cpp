//===- SourceNames.cpp - Source names of a command, for users -------------===//

#include "SourceNames.h"

#include "torch_ltc/Support/UserLocation.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::torch_ltc;

SourceNames mlir::torch_ltc::getSourceNames(Location location) {
  llvm::SetVector<StringRef> ops, modules;
  llvm::SetVector<std::pair<StringRef, unsigned>> lines;
  llvm::SmallSetVector<unsigned, 4> nodes;
  location->walk([&](Location part) {
    if (auto name = dyn_cast<NameLoc>(part)) {
      StringRef text = name.getName().getValue();
      if (std::optional<unsigned> node = getNodeNumber(text))
        nodes.insert(*node);
      else if (!isOpName(text))
        modules.insert(text);
      else if (text.consume_front("torch."))
        ops.insert(text);
    } else if (auto file = dyn_cast<FileLineColLoc>(part)) {
      lines.insert(
          {llvm::sys::path::filename(file.getFilename()), file.getLine()});
    }
    return WalkResult::advance();
  });
  SourceNames result;
  result.ops.assign(ops.begin(), ops.end());
  result.modules.assign(modules.begin(), modules.end());
  result.nodes.assign(nodes.begin(), nodes.end());
  for (auto [file, line] : lines)
    result.lines.push_back((file + ":" + Twine(line)).str());
  return result;
}
