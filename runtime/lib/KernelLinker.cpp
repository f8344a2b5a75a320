//===- KernelLinker.cpp - From ELF objects to callable kernels ------------===//

#include "KernelLinker.h"

#include "Diagnostics.h"
#include "HalfConversions.h"

#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/Core.h"
#include "llvm/ExecutionEngine/Orc/MapperJITLinkMemoryManager.h"
#include "llvm/ExecutionEngine/Orc/MemoryMapper.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h"
#include "llvm/ExecutionEngine/Orc/TaskDispatch.h"
#include "llvm/Support/MemoryBuffer.h"

#include <atomic>
#include <dlfcn.h>
#include <mutex>

using namespace torch_ltc::runtime;
namespace orc = llvm::orc;

namespace {

/// Resolves the external symbols of kernels.
class HostSymbols : public orc::DefinitionGenerator {
public:
  HostSymbols() {
    // Uses dlopen instead of a link dependency, because libmvec exists only in
    // the glibc of x86-64 and AArch64. RTLD_DEFAULT would find libm or libmvec
    // only if another loaded library needs it.
    math = dlopen("libm.so.6", RTLD_LAZY | RTLD_LOCAL);
    vectorMath = dlopen("libmvec.so.1", RTLD_LAZY | RTLD_LOCAL);
  }

  llvm::Error tryToGenerate(orc::LookupState &, orc::LookupKind,
                            orc::JITDylib &library, orc::JITDylibLookupFlags,
                            const orc::SymbolLookupSet &symbols) override {
    orc::SymbolMap found;
    for (const auto &[name, flags] : symbols)
      if (void *address = find(*name))
        found[name] = {orc::ExecutorAddr::fromPtr(address),
                       llvm::JITSymbolFlags::Exported |
                           llvm::JITSymbolFlags::Callable};
    if (found.empty())
      return llvm::Error::success();
    return library.define(orc::absoluteSymbols(std::move(found)));
  }

private:
  void *find(llvm::StringRef name) const {
    if (void *address = halfConversion(name))
      return address;
    std::string symbol = name.str();
    if (name.starts_with("_ZGV"))
      return vectorMath ? dlsym(vectorMath, symbol.c_str()) : nullptr;
    // Also searches libm's dependencies, which include the C library.
    return math ? dlsym(math, symbol.c_str()) : nullptr;
  }

  void *math;
  void *vectorMath;
};

/// Errors that the session has reported while this thread links kernels. The
/// session runs its tasks on the linking thread.
thread_local std::string linkReports;

/// The process's JIT session. It links finished objects only, so it doesn't
/// need LLJIT, which would set up a compiler and a platform runtime.
class LinkSession {
public:
  static llvm::Expected<LinkSession &> get() {
    // Never destroyed: kernels may run on another thread at exit.
    static LinkSession *session = nullptr;
    static std::mutex mutex;
    std::lock_guard<std::mutex> lock(mutex);
    if (!session) {
      auto control = createControl();
      if (!control)
        return control.takeError();
      session = new LinkSession(std::move(*control));
    }
    return *session;
  }

  orc::ExecutionSession session;
  orc::ObjectLinkingLayer layer;
  orc::JITDylib *host;
  std::atomic<uint64_t> counter{0};

private:
  static llvm::Expected<std::unique_ptr<orc::ExecutorProcessControl>>
  createControl() {
    // Reserves large slabs: with the default manager every kernel would map
    // three segments, with two system calls and a page for each.
    auto memory = orc::MapperJITLinkMemoryManager::CreateWithMapper<
        orc::InProcessMemoryMapper>(size_t(16) << 20);
    if (!memory)
      return memory.takeError();
    // Runs tasks on the calling thread: the default dispatcher starts threads,
    // which a fork() of the Python process would lose.
    return orc::SelfExecutorProcessControl::Create(
        nullptr, std::make_unique<orc::InPlaceTaskDispatcher>(),
        std::move(*memory));
  }

  explicit LinkSession(std::unique_ptr<orc::ExecutorProcessControl> control)
      : session(std::move(control)), layer(session),
        host(&session.createBareJITDylib("host")) {
    // A lookup fails with "failed to materialize"; the cause is reported here.
    // The default reporter would print it to stderr.
    session.setErrorReporter([](llvm::Error error) {
      std::string text = llvm::toString(std::move(error));
      linkReports += (linkReports.empty() ? "" : "; ") + text;
    });
    host->addGenerator(std::make_unique<HostSymbols>());
  }
};

llvm::Error linkFailure(const std::string &symbol, llvm::Error error) {
  std::string text = llvm::toString(std::move(error));
  if (!linkReports.empty())
    text = std::move(linkReports);
  linkReports.clear();
  return failure("Kernel '{0}' can't be linked: {1}. The program is damaged or "
                 "from another version: delete the program cache and compile "
                 "it again.",
                 symbol, text);
}

} // namespace

llvm::Expected<std::unique_ptr<KernelLibrary>>
KernelLibrary::link(const google::protobuf::RepeatedPtrField<Kernel> &kernels) {
  std::unique_ptr<KernelLibrary> result(new KernelLibrary);
  if (kernels.empty())
    return result;
  auto link = LinkSession::get();
  if (!link)
    return link.takeError();
  orc::ExecutionSession &session = link->session;
  linkReports.clear();

  // Each executable gets its own JITDylib, so that symbols of two programs
  // never conflict and an executable's code is freed with it.
  result->library =
      &session.createBareJITDylib("program " + std::to_string(link->counter++));
  result->library->addToLinkOrder(*link->host);

  orc::SymbolLookupSet symbols;
  for (const Kernel &kernel : kernels) {
    auto object =
        llvm::MemoryBuffer::getMemBufferCopy(kernel.object(), kernel.symbol());
    if (llvm::Error error =
            link->layer.add(*result->library, std::move(object)))
      return linkFailure(kernel.symbol(), std::move(error));
    symbols.add(session.intern(kernel.symbol()));
  }
  auto addresses = session.lookup(
      orc::makeJITDylibSearchOrder({result->library}), std::move(symbols));
  if (!addresses)
    return linkFailure(kernels.size() == 1
                           ? kernels[0].symbol()
                           : "one of " + std::to_string(kernels.size()),
                       addresses.takeError());
  for (const Kernel &kernel : kernels)
    result->functions.push_back((*addresses)[session.intern(kernel.symbol())]
                                    .getAddress()
                                    .toPtr<KernelFunction>());
  return result;
}

KernelLibrary::~KernelLibrary() {
  if (!library)
    return;
  // The session exists, because it created `library`. An error while unmapping
  // can't be handled.
  if (auto link = LinkSession::get())
    llvm::consumeError(link->session.removeJITDylib(*library));
  else
    llvm::consumeError(link.takeError());
}
