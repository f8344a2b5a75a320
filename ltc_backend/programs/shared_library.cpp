//===- shared_library.cpp - Loads torch_ltc's libraries -------------------===//

#include "programs/shared_library.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>

namespace {

/// Load address of each library of the process.
std::set<uintptr_t> loadedLibraries() {
  std::set<uintptr_t> addresses;
  dl_iterate_phdr(
      [](dl_phdr_info *library, size_t, void *found) {
        static_cast<std::set<uintptr_t> *>(found)->insert(library->dlpi_addr);
        return 0;
      },
      &addresses);
  return addresses;
}

/// Held by `openLibrary`.
std::mutex openMutex;
/// Protects the sets.
std::mutex mutex;
std::set<uintptr_t> brought;
/// While `openLibrary` runs, the libraries that were loaded before.
std::optional<std::set<uintptr_t>> before;

/// Whether `openLibrary` loaded the library at `address`, directly or as a
/// dependency that wasn't loaded before.
bool wasLoadedByBackend(uintptr_t address) {
  std::scoped_lock lock(mutex);
  return brought.contains(address) || (before && !before->contains(address));
}

/// Releases the pages of read-only segments. Pages of other segments may differ
/// from the file (because of relocations, for example) and would be lost.
void releasePages(dl_phdr_info *library) {
  uintptr_t page = uintptr_t(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = library->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W))
      continue;
    // Excludes partial pages at the ends, which a writable segment may share.
    uintptr_t begin = library->dlpi_addr + segment.p_vaddr;
    uintptr_t end = (begin + segment.p_memsz) / page * page;
    begin = (begin + page - 1) / page * page;
    if (begin < end)
      madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
  }
}

} // namespace

std::string torch_ltc::backendLibraryPath() {
  Dl_info info{};
  dladdr(reinterpret_cast<void *>(&siblingLibraryPath), &info);
  return info.dli_fname ? info.dli_fname : "";
}

std::string torch_ltc::siblingLibraryPath(const std::string &name) {
  std::string own = backendLibraryPath();
  return own.substr(0, own.rfind('/') + 1) + name;
}

void *torch_ltc::openLibrary(const std::string &path, const char *what) {
  std::scoped_lock opening(openMutex);
  {
    std::set<uintptr_t> loaded = loadedLibraries();
    std::scoped_lock lock(mutex);
    before = std::move(loaded);
  }
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::set<uintptr_t> loaded = loadedLibraries();
  {
    std::scoped_lock lock(mutex);
    if (library)
      for (uintptr_t address : loaded)
        if (!before->contains(address))
          brought.insert(address);
    before.reset();
  }
  if (!library)
    throw std::runtime_error(
        std::string("torch_ltc's ") + what + " can't be loaded (" + dlerror() +
        "); 'python -m torch_ltc.doctor' says what is missing.");
  releaseLibraryPages(); // LLVM's static constructors have read 40 MB
  return library;
}

void torch_ltc::releaseLibraryPages() {
  dl_iterate_phdr(
      [](dl_phdr_info *library, size_t, void *) {
        if (wasLoadedByBackend(library->dlpi_addr))
          releasePages(library);
        return 0;
      },
      nullptr);
}

void torch_ltc::releaseOwnPages() {
  Dl_info own;
  if (dladdr(reinterpret_cast<void *>(&releaseOwnPages), &own))
    dl_iterate_phdr(
        [](dl_phdr_info *library, size_t, void *base) {
          if (reinterpret_cast<void *>(library->dlpi_addr) != base)
            return 0;
          releasePages(library);
          return 1;
        },
        own.dli_fbase);
}

void *torch_ltc::findFunction(void *library, const char *name,
                              const char *what) {
  void *function = dlsym(library, name);
  if (!function)
    throw std::runtime_error(std::string("torch_ltc's ") + what +
                             " library lacks the function " + name +
                             ": its version is different; build or "
                             "install torch_ltc again.");
  return function;
}
