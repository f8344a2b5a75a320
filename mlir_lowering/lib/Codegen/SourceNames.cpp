//===- SourceNames.cpp - What a command computes, for people --------------===//

#include "SourceNames.h"

#include "torch_ltc/Support/UserLocation.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::torch_ltc;

SourceNames mlir::torch_ltc::getSourceNames(Location location) {
  // More than this many names tell nobody anything.
  constexpr size_t maxNames = 8;
  llvm::SetVector<StringRef> names;
  SourceNames result;
  location->walk([&](Location part) {
    if (auto name = dyn_cast<NameLoc>(part)) {
      StringRef text = name.getName().getValue();
      if (isOpName(text) && text.consume_front("torch."))
        names.insert(text);
    } else if (auto file = dyn_cast<FileLineColLoc>(part);
               file && result.line.empty()) {
      result.line = llvm::sys::path::filename(file.getFilename()).str() + ":" +
                    std::to_string(file.getLine());
    }
    return WalkResult::advance();
  });
  bool isCut = names.size() > maxNames;
  SmallVector<StringRef> shown =
      llvm::to_vector(llvm::ArrayRef(names.getArrayRef()).take_front(maxNames));
  result.ops = llvm::join(shown, "+");
  if (isCut)
    result.ops += "+...";
  return result;
}
