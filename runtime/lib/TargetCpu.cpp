//===- TargetCpu.cpp - The CPU that kernels are compiled for --------------===//

#include "TargetCpu.h"

#include "BuildId.h"
#include "Diagnostics.h"
#include "executable.pb.h"
#include "torch_ltc-c/runtime.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/TargetParser/Host.h"
#if defined(__x86_64__)
#include "llvm/TargetParser/X86TargetParser.h"
#endif

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

using namespace torch_ltc::runtime;

namespace {

/// Features of the host in a fixed order, so that equal hosts have equal keys.
std::string hostFeatureString() {
  std::vector<std::string> features;
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    features.push_back((feature.second ? "+" : "-") + feature.first().str());
  std::sort(features.begin(), features.end(),
            [](const std::string &a, const std::string &b) {
              return a.compare(1, std::string::npos, b, 1, std::string::npos) <
                     0;
            });
  return llvm::join(features, ",");
}

struct Target {
  std::string name;
  std::string features;
  std::string salt;

  void computeSalt() {
    static const std::string build = ownBuildId();
    salt = llvm::formatv("torch_ltc format {0}, build {1}; LLVM {2}; {3} {4}",
                         int(FORMAT_VERSION), build, LLVM_VERSION_STRING, name,
                         features)
               .str();
  }
};

/// The C API returns pointers into a target, and another thread may hold one
/// when the target is replaced. So replaced targets stay alive; they are few,
/// because the configuration sets the target once.
class CurrentTarget {
public:
  CurrentTarget() {
    install(llvm::sys::getHostCPUName().str(), hostFeatureString());
  }

  const Target &get() {
    std::lock_guard<std::mutex> lock(mutex);
    return *targets.back();
  }

  void install(std::string name, std::string features) {
    auto target = std::make_unique<Target>();
    target->name = std::move(name);
    target->features = std::move(features);
    target->computeSalt();
    std::lock_guard<std::mutex> lock(mutex);
    targets.push_back(std::move(target));
  }

private:
  std::mutex mutex;
  std::vector<std::unique_ptr<Target>> targets;
};

CurrentTarget &currentTarget() {
  static CurrentTarget target;
  return target;
}

} // namespace

const char *ltcCacheSalt(void) { return currentTarget().get().salt.c_str(); }

const char *ltcTargetCpuName(void) {
  return currentTarget().get().name.c_str();
}

const char *ltcTargetCpuFeatures(void) {
  return currentTarget().get().features.c_str();
}

void ltcSetTargetCpu(const char *name, const char *features) {
  std::string cpu = name ? name : "";
  std::string featureString = features ? features : "";
  // "native" and "" mean the CPU that the constructor detected.
  if (cpu.empty() || cpu == "native") {
    cpu = llvm::sys::getHostCPUName().str();
    if (featureString.empty())
      featureString = hostFeatureString();
  }
  currentTarget().install(std::move(cpu), std::move(featureString));
}

llvm::Error torch_ltc::runtime::checkHostRuns(llvm::StringRef cpu) {
  auto [name, featureString] = cpu.split(' ');
  llvm::SmallVector<llvm::StringRef> features;
  if (!featureString.trim().empty())
    featureString.split(features, ',', -1, /*KeepEmpty=*/false);
#if defined(__x86_64__)
  else if (llvm::X86::parseArchX86(name) != llvm::X86::CK_None)
    llvm::X86::getFeaturesForCPU(name, features, /*NeedPlus=*/true);
#endif

  static const llvm::StringMap<bool, llvm::MallocAllocator> host =
      llvm::sys::getHostCPUFeatures();
  llvm::SmallVector<llvm::StringRef> missing;
  for (llvm::StringRef feature : features) {
    feature = feature.trim();
    if (!feature.consume_front("+"))
      continue;
    // Tuning flags and pseudo features ("+prefer-256-bit", "+64bit") aren't
    // properties of a host, so only features in the host's list are checked.
    auto known = host.find(feature);
    if (known != host.end() && !known->second)
      missing.push_back(feature);
  }
  if (missing.empty())
    return llvm::Error::success();
  return failure("The compiled program needs a CPU with {0} (compiled for "
                 "'{1}'), which this machine's '{2}' lacks: compile it again "
                 "here, or for a CPU name that all your machines support.",
                 llvm::join(missing, ", "), name, llvm::sys::getHostCPUName());
}
