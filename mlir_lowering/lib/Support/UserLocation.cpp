//===- UserLocation.cpp - The user's line for an op -----------------------===//

#include "torch_ltc/Support/UserLocation.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/Twine.h"

using namespace mlir;

Location torch_ltc::makeUserLocation(MLIRContext *context, StringRef opName,
                                     StringRef file, unsigned line,
                                     StringRef modulePath, unsigned node) {
  Location loc = UnknownLoc::get(context);
  if (!file.empty())
    loc = FileLineColLoc::get(context, file, line, 0);
  if (!modulePath.empty())
    loc = NameLoc::get(StringAttr::get(context, modulePath), loc);
  if (node)
    loc = NameLoc::get(StringAttr::get(context, "#" + Twine(node)), loc);
  if (!opName.empty())
    loc = NameLoc::get(StringAttr::get(context, opName), loc);
  return loc;
}

bool torch_ltc::isOpName(StringRef name) { return name.starts_with("torch."); }

std::optional<unsigned> torch_ltc::getNodeNumber(StringRef name) {
  unsigned number;
  if (!name.consume_front("#") || name.getAsInteger(10, number))
    return std::nullopt;
  return number;
}

std::string torch_ltc::describeUserLocation(Location loc) {
  std::string file, module;
  // Fused locations (of ops created from several) contain several positions, of
  // which the first is used.
  loc->walk([&](Location part) {
    if (auto name = dyn_cast<NameLoc>(part); name && module.empty() &&
                                             !isOpName(name.getName()) &&
                                             !getNodeNumber(name.getName()))
      module = name.getName().str();
    auto position = dyn_cast<FileLineColLoc>(part);
    if (!position)
      return WalkResult::advance();
    file = (position.getFilename().strref() + ":" + Twine(position.getLine()))
               .str();
    return WalkResult::interrupt();
  });
  if (file.empty() || module.empty())
    return file + module;
  return file + " in " + module;
}

std::string torch_ltc::userLocationSuffix(Location loc) {
  std::string text = describeUserLocation(loc);
  return text.empty() ? text : " (" + text + ")";
}
