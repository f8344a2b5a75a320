//===- compile_cost.cpp - Expected time of a compilation ------------------===//

#include "compilation/compile_cost.h"

#include "compilation/compiler_library.h"
#include "graph/graph_difference.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

using namespace torch_ltc;

namespace {

/// Seconds to load the compiler (which also needs 70 MB of memory), and to
/// start a compilation once it is loaded.
constexpr double kSecondsToLoad = 0.15;
constexpr double kSecondsToBegin = 0.005;
constexpr double kSecondsPerOp = 1e-4;
/// Seconds for each node that no earlier compiled graph contained. A new kernel
/// consists of about three nodes.
constexpr double kSecondsPerNewNode = 4e-3;

class CompileCosts {
public:
  static CompileCosts &get() {
    static auto *costs = new CompileCosts;
    return *costs;
  }

  double least(size_t ops) {
    std::lock_guard<std::mutex> lock(mutex);
    return factor * fixedSeconds(ops);
  }

  double expected(const GraphSnapshot &graph) {
    std::lock_guard<std::mutex> lock(mutex);
    return factor * estimate(graph, nodeSignatures(graph));
  }

  void note(const GraphSnapshot &graph, double seconds) {
    std::lock_guard<std::mutex> lock(mutex);
    const std::vector<uint64_t> signatures = nodeSignatures(graph);
    double guess = estimate(graph, signatures);
    if (std::exchange(isFirst, false))
      guess += kSecondsToLoad;
    // The mean limits the weight of one compilation, which other processes may
    // have slowed down.
    factor = std::clamp((factor + seconds / guess) / 2, 0.25, 4.0);
    if (known.size() > kMaxKnown)
      known.clear();
    known.insert(signatures.begin(), signatures.end());
  }

private:
  static constexpr size_t kMaxKnown = 100000;

  static double fixedSeconds(size_t ops) {
    return (isCompilerLoaded() ? kSecondsToBegin : kSecondsToLoad) +
           kSecondsPerOp * double(ops);
  }

  double estimate(const GraphSnapshot &graph,
                  const std::vector<uint64_t> &signatures) const {
    size_t numNew = 0;
    for (size_t i = 0; i < signatures.size(); ++i)
      numNew += (i == 0 || signatures[i] != signatures[i - 1]) &&
                !known.contains(signatures[i]);
    return fixedSeconds(graph.numOps) + kSecondsPerNewNode * double(numNew);
  }

  std::mutex mutex;
  std::unordered_set<uint64_t> known;
  double factor = 1;
  bool isFirst = true;
};

} // namespace

double torch_ltc::expectedCompileSeconds(const GraphSnapshot &graph) {
  return CompileCosts::get().expected(graph);
}

double torch_ltc::minCompileSeconds(size_t ops) {
  return CompileCosts::get().least(ops);
}

void torch_ltc::noteCompilation(const GraphSnapshot &graph, double seconds) {
  CompileCosts::get().note(graph, seconds);
}
