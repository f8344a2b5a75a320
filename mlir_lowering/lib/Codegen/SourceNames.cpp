//===- SourceNames.cpp - What a command computes, for people --------------===//

#include "SourceNames.h"

#include "torch_ltc/Support/UserLocation.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::torch_ltc;

static std::string joined(const llvm::SetVector<StringRef> &names,
                          size_t limit) {
  std::string text =
      llvm::join(llvm::ArrayRef(names.getArrayRef()).take_front(limit), "+");
  return names.size() > limit ? text + "+..." : text;
}

SourceNames mlir::torch_ltc::getSourceNames(Location location) {
  llvm::SetVector<StringRef> names, modules;
  llvm::SmallSetVector<unsigned, 4> nodes;
  SourceNames result;
  location->walk([&](Location part) {
    if (auto name = dyn_cast<NameLoc>(part)) {
      StringRef text = name.getName().getValue();
      if (std::optional<unsigned> node = getNodeNumber(text))
        nodes.insert(*node);
      else if (!isOpName(text))
        modules.insert(text);
      else if (text.consume_front("torch."))
        names.insert(text);
    } else if (auto file = dyn_cast<FileLineColLoc>(part);
               file && result.line.empty()) {
      result.line = llvm::sys::path::filename(file.getFilename()).str() + ":" +
                    std::to_string(file.getLine());
    }
    return WalkResult::advance();
  });
  // More than this many names tell nobody anything.
  result.ops = joined(names, 8);
  result.modules = joined(modules, 3);
  result.nodes.assign(nodes.begin(), nodes.end());
  return result;
}
