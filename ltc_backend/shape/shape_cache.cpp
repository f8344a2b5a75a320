//===- shape_cache.cpp - Cached results of Meta kernels -------------------===//

#include "shape/shape_inference.h"

#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

using namespace torch_ltc;
using torch::lazy::hash_t;

struct ShapeCache::Implementation {
  using Entry = std::pair<hash_t, std::vector<ResultShape>>;

  struct Hasher {
    size_t operator()(const hash_t &key) const {
      return torch::lazy::HashReduce(key);
    }
  };

  explicit Implementation(size_t capacity) : capacity(capacity) {}

  mutable std::mutex mutex;
  const size_t capacity;
  /// Ordered from the most to the least recently used entry.
  std::list<Entry> entries;
  std::unordered_map<hash_t, std::list<Entry>::iterator, Hasher> positions;
};

ShapeCache::ShapeCache(size_t capacity)
    : implementation(std::make_unique<Implementation>(capacity)) {}

ShapeCache::~ShapeCache() = default;

bool ShapeCache::find(const hash_t &key, ResultShapes &results) {
  Implementation &self = *implementation;
  std::lock_guard<std::mutex> lock(self.mutex);
  auto found = self.positions.find(key);
  if (found == self.positions.end())
    return false;
  self.entries.splice(self.entries.begin(), self.entries, found->second);
  const std::vector<ResultShape> &shapes = found->second->second;
  results.assign(shapes.begin(), shapes.end());
  return true;
}

void ShapeCache::insert(const hash_t &key, c10::ArrayRef<ResultShape> results) {
  Implementation &self = *implementation;
  std::lock_guard<std::mutex> lock(self.mutex);
  auto found = self.positions.find(key);
  if (found != self.positions.end()) {
    found->second->second.assign(results.begin(), results.end());
    self.entries.splice(self.entries.begin(), self.entries, found->second);
    return;
  }
  if (self.capacity == 0)
    return;
  if (self.entries.size() == self.capacity) {
    self.positions.erase(self.entries.back().first);
    self.entries.pop_back();
  }
  self.entries.emplace_front(
      key, std::vector<ResultShape>(results.begin(), results.end()));
  self.positions.emplace(key, self.entries.begin());
}

void ShapeCache::clear() {
  std::lock_guard<std::mutex> lock(implementation->mutex);
  implementation->entries.clear();
  implementation->positions.clear();
}

size_t ShapeCache::size() const {
  std::lock_guard<std::mutex> lock(implementation->mutex);
  return implementation->entries.size();
}
