//===- groups.cpp - Process groups by number ------------------------------===//

#include "distributed/groups.h"

#include <mutex>
#include <vector>

using namespace torch_ltc;

namespace {

using WeakGroup = c10::weak_intrusive_ptr<c10d::ProcessGroup>;

std::mutex groupsMutex;

std::vector<WeakGroup> &groups() {
  static auto *list = new std::vector<WeakGroup>;
  return *list;
}

} // namespace

int64_t torch_ltc::groupNumber(const ProcessGroupPtr &group) {
  std::scoped_lock lock(groupsMutex);
  std::vector<WeakGroup> &list = groups();
  size_t place = list.size();
  for (size_t i = list.size(); i-- > 0;) {
    if (list[i].lock() == group)
      return int64_t(i);
    if (list[i].expired())
      place = i;
  }
  if (place == list.size())
    list.emplace_back(group);
  else
    list[place] = WeakGroup(group);
  return int64_t(place);
}

ProcessGroupPtr torch_ltc::groupOfNumber(int64_t number) {
  std::scoped_lock lock(groupsMutex);
  const std::vector<WeakGroup> &list = groups();
  ProcessGroupPtr group = size_t(number) < list.size()
                              ? list[size_t(number)].lock()
                              : ProcessGroupPtr();
  TORCH_CHECK(group, "a collective ran after its process group had been "
                     "destroyed: call torch_ltc.wait_device_ops() before "
                     "destroy_process_group()");
  return group;
}
