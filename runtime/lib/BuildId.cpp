//===- BuildId.cpp - Identifiers of library builds ------------------------===//

#include "BuildId.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/BuildID.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/xxhash.h"

#include <dlfcn.h>

using namespace torch_ltc::runtime;

std::string torch_ltc::runtime::buildIdOfFile(llvm::StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false);
  if (!file)
    return "none";
  auto object =
      llvm::object::ObjectFile::createObjectFile(**file, llvm::file_magic(),
                                                 /*InitContent=*/false);
  if (object) {
    llvm::object::BuildIDRef id = llvm::object::getBuildID(object->get());
    if (!id.empty())
      return llvm::toHex(id, /*LowerCase=*/true);
  } else {
    llvm::consumeError(object.takeError());
  }
  return llvm::utohexstr(llvm::xxh3_64bits((*file)->getBuffer()), true, 16);
}

std::string torch_ltc::runtime::ownBuildId() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<void *>(&buildIdOfFile), &info))
    return "none";
  return buildIdOfFile(info.dli_fname);
}
