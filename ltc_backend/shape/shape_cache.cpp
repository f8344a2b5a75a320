//===- shape_cache.cpp - Cached results of Meta kernels -------------------===//

#include "shape/shape_inference.h"

using namespace torch_ltc;
using torch::lazy::hash_t;

bool ShapeCache::find(const hash_t &key, ResultShapes &results) {
  std::shared_ptr<std::vector<ResultShape>> found = entries.Get(key);
  if (!found)
    return false;
  results.assign(found->begin(), found->end());
  return true;
}

void ShapeCache::insert(const hash_t &key, c10::ArrayRef<ResultShape> results) {
  entries.Erase(key); // Add() keeps an existing entry
  entries.Add(key, std::make_shared<std::vector<ResultShape>>(results.begin(),
                                                              results.end()));
}
