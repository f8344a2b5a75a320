//===- shared_library.cpp - Libraries of ours, loaded when needed ---------===//

#include "lowering/shared_library.h"

#include "lowering/compiler_library.h"

#include <dlfcn.h>

#include <stdexcept>

std::string torch_ltc::siblingLibraryPath(const std::string &name) {
  std::string own = backendLibraryPath();
  return own.substr(0, own.rfind('/') + 1) + name;
}

void *torch_ltc::openLibrary(const std::string &path, const char *what) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw std::runtime_error(
        std::string("torch_ltc's ") + what + " can't be loaded (" + dlerror() +
        "); 'python -m torch_ltc.doctor' says what is missing.");
  return library;
}

void *torch_ltc::findFunction(void *library, const char *name,
                              const char *what) {
  void *function = dlsym(library, name);
  if (!function)
    throw std::runtime_error(std::string("torch_ltc's ") + what +
                             " library lacks the function " + name +
                             ": it is of another version; build or "
                             "install torch_ltc again.");
  return function;
}
