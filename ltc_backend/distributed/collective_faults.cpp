//===- collective_faults.cpp - Ranks that differ, are late or end ---------===//

#include "distributed/collective_faults.h"

#include "config/config.h"
#include "execution/step_queue.h"

#include <ATen/Functions.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>
#include <unordered_map>

using namespace torch_ltc;
using at::Tensor;

namespace {

using StorePtr = c10::intrusive_ptr<c10d::Store>;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// How long a rank waits for a collective before it announces the collective in
/// the job's store.
constexpr milliseconds kAnnounceAfter{1000};
/// How long a rank whose collective failed waits for the announcements of the
/// other ranks, which notice the failure at about the same time.
constexpr milliseconds kWaitForAnnouncements{2000};
/// Maximum time for requests to the job's store, which may have ended with the
/// rank that hosts it. Its client would wait for the group's timeout.
constexpr milliseconds kWaitForStore{5000};
/// Maximum number of a chain's collectives whose Python lines are stored.
constexpr int64_t kMaxPlaces = 4096;
/// Maximum length of the text (signature and Python line) that ranks exchange.
constexpr int64_t kTextBytes = 512;
/// Maximum number of ranks that an error names.
constexpr size_t kMaxRanksNamed = 16;

/// Python lines of collectives, by their numbers.
class Places {
public:
  void note(int64_t number, LocationId place) {
    std::scoped_lock lock(mutex);
    places[number] = place;
    // The number of another chain differs in its high bits.
    places.erase(number - kMaxPlaces);
  }
  LocationId find(int64_t number) {
    std::scoped_lock lock(mutex);
    auto found = places.find(number);
    return found == places.end() ? 0 : found->second;
  }

private:
  std::mutex mutex;
  std::unordered_map<int64_t, LocationId> places;
};

Places &places() {
  static auto *instance = new Places;
  return *instance;
}

int64_t nextNumberIn(const std::string &group) {
  static std::mutex mutex;
  static auto *numbers = new std::map<std::string, int64_t>;
  std::scoped_lock lock(mutex);
  return ++(*numbers)[group];
}

const char *reductionName(int64_t reduction) {
  static const char *const names[] = {"sum", "avg", "product", "min",   "max",
                                      "and", "or",  "xor",     "premul"};
  return reduction >= 0 && size_t(reduction) < std::size(names)
             ? names[reduction]
             : "?";
}

/// Returns a collective's kind, reduction, root, number of elements and dtype,
/// which are equal on all ranks that take part in the collective. The signature
/// of a message names the other rank instead of a root.
std::string signatureOf(const BackendCall &call, const Tensor &input,
                        const Tensor &output) {
  std::string_view kind = call.kind;
  auto number = [&](size_t i) { return call.numbers[i]; };
  std::string text(kind);
  if (kind == "all_reduce" || kind == "reduce_scatter")
    text += c10::str("(", reductionName(number(1)), ")");
  else if (kind == "reduce")
    text += c10::str("(", reductionName(number(1)), ", root ", number(2), ")");
  else if (kind == "broadcast" || kind == "gather" || kind == "scatter")
    text += c10::str("(root ", number(1), ")");
  else if (kind == "send" || kind == "receive")
    text += c10::str(kind == "send" ? " to rank " : " from rank ", number(1));
  // Omits the size of an all_to_all, which differs between ranks.
  int64_t elements = kind == "scatter" || kind.starts_with("receive")
                         ? output.numel()
                         : input.numel();
  if (kind != "all_to_all")
    text += c10::str(" of ", elements);
  return c10::str(text, " ", c10::toString(output.scalar_type()));
}

std::string placeText(LocationId place) {
  if (!place)
    return "";
  Location location = locationOf(place);
  return " at " + location.file + ":" + std::to_string(location.line);
}

/// "all_reduce(sum) of 1000 Float at train.py:31"
std::string signatureAndPlace(const CollectiveName &name) {
  return name.signature + placeText(name.place);
}

//===----------------------------------------------------------------------===//
// Announcements of ranks that wait
//===----------------------------------------------------------------------===//

/// The collectives that threads of this rank have announced. Each thread waits
/// for one at a time.
class Announced {
public:
  void add(const CollectiveName &name) {
    std::scoped_lock lock(mutex);
    texts[std::this_thread::get_id()] =
        c10::str(name.number, "\n", name.group->getGroupName(), "\n",
                 signatureAndPlace(name), "\n");
  }
  /// Returns whether the calling thread had announced a collective.
  bool remove() {
    std::scoped_lock lock(mutex);
    return texts.erase(std::this_thread::get_id());
  }
  /// Three lines for each collective.
  std::string text() {
    std::scoped_lock lock(mutex);
    std::string all;
    for (const auto &[thread, text] : texts)
      all += text;
    return all;
  }

private:
  std::mutex mutex;
  std::map<std::thread::id, std::string> texts;
};

Announced &announced() {
  static auto *instance = new Announced;
  return *instance;
}

/// Announces to other ranks, through the job's store, which collectives this
/// rank waits for. Errors of the store are ignored, because they must not hide
/// the error that is about to be reported.
class Arrivals {
public:
  explicit Arrivals(const CollectiveName &name) : name(name) {
    try {
      StorePtr own = name.group->getStore();
      // A group's store is the job's store with a prefix.
      if (auto *prefixed = dynamic_cast<c10d::PrefixStore *>(own.get()))
        own = prefixed->getUnderlyingStore();
      // A separate connection, because another thread may be waiting in `own`.
      store = own ? own->clone() : nullptr;
      auto options =
          name.group->getBackend(c10::DeviceType::Lazy)->getBackendOptions();
      globalRanks = options->global_ranks_in_group;
    } catch (...) {
    }
  }

  void announce() const {
    announced().add(name);
    update();
  }

  /// Writes what this rank has announced to the store.
  void update() const {
    try {
      if (!store)
        return;
      std::string key = keyOf(name.group->getRank());
      std::string text = announced().text();
      if (text.empty())
        store->deleteKey(key);
      else
        store->set(key, text);
    } catch (...) {
    }
  }

  void withdraw() const {
    if (announced().remove())
      update();
  }

  /// Sentences that name the ranks that are late; "" if nothing is known.
  std::string whoIsLate() const {
    if (!store)
      return "";
    try {
      std::map<int, std::string> late;
      auto end = steady_clock::now() + kWaitForAnnouncements;
      for (;;) {
        late = lateRanks();
        if (late.empty() || steady_clock::now() >= end)
          break;
        std::this_thread::sleep_for(milliseconds(50));
      }
      return textOf(late);
    } catch (...) {
      return "";
    }
  }

private:
  std::string keyOf(int rank) const {
    uint64_t global = size_t(rank) < globalRanks.size()
                          ? globalRanks[size_t(rank)]
                          : uint64_t(rank);
    return "torch_ltc/waiting/" + std::to_string(global);
  }

  /// The ranks that have announced neither this collective nor a later one of
  /// its group, each with the collective that it has announced instead, or "".
  std::map<int, std::string> lateRanks() const {
    std::map<int, std::string> late;
    for (int rank = 0; rank < name.group->getSize(); ++rank) {
      if (rank == name.group->getRank())
        continue;
      std::string key = keyOf(rank);
      std::istringstream lines(store->check({key}) ? store->get_to_str(key)
                                                   : "");
      std::string number, group, text, instead;
      bool isHere = false, isInGroup = false;
      while (std::getline(lines, number) && std::getline(lines, group) &&
             std::getline(lines, text)) {
        bool isSame = group == name.group->getGroupName();
        isHere = isHere || (isSame && std::stoll(number) >= name.number);
        if (!isInGroup)
          instead = text + (isSame ? "" : " in group '" + group + "'");
        isInGroup = isInGroup || isSame;
      }
      if (!isHere)
        late[rank] = instead;
    }
    return late;
  }

  static std::string textOf(const std::map<int, std::string> &late) {
    std::string silent, text;
    size_t numSilent = 0;
    for (const auto &[rank, doing] : late) {
      if (!doing.empty())
        text += c10::str(" Rank ", rank, " waits for ", doing, " instead.");
      else if (numSilent++ < kMaxRanksNamed)
        silent += (silent.empty() ? "" : ", ") + std::to_string(rank);
    }
    if (numSilent > kMaxRanksNamed)
      silent += c10::str(" and ", numSilent - kMaxRanksNamed, " more");
    if (numSilent == 1)
      text += " Rank " + silent + " hasn't arrived: it is late or has ended.";
    else if (numSilent)
      text +=
          " Ranks " + silent + " haven't arrived: they are late or have ended.";
    return text;
  }

  const CollectiveName &name;
  StorePtr store;
  std::vector<uint64_t> globalRanks;
};

/// Removes the position in the backend's source ("[file.cc:81] ..."), which
/// users can't use, and the backend's advice, which our error gives in more
/// detail.
std::string firstSentence(std::string text) {
  size_t end = text.find("] ");
  if (text.starts_with("[") && end != std::string::npos)
    text.erase(0, end + 2);
  text = text.substr(0, text.find('\n'));
  text = text.substr(0, text.find(". This is typically caused by"));
  while (text.ends_with('.') || text.ends_with(' '))
    text.pop_back();
  return text;
}

/// Announces the collective, and returns sentences that name the ranks that are
/// late.
std::string whoIsLate(const CollectiveName &name) {
  announced().add(name);
  auto answer = std::make_shared<std::promise<std::string>>();
  std::future<std::string> late = answer->get_future();
  std::thread([answer, name] {
    Arrivals arrivals(name);
    arrivals.update();
    answer->set_value(arrivals.whoIsLate());
  }).detach();
  if (late.wait_for(kWaitForStore) == std::future_status::ready)
    return late.get();
  return " The job's store doesn't answer: the process that hosts it, rank 0 "
         "or torchrun, may have ended.";
}

[[noreturn]] void raise(const CollectiveName &name, const std::string &cause) {
  double seconds =
      std::chrono::duration<double>(steady_clock::now() - name.begin).count();
  StepPause pause;
  std::string late = name.isMessage() ? "" : whoIsLate(name);
  TORCH_CHECK(
      false, signatureAndPlace(name), " failed on rank ", name.group->getRank(),
      " of ", name.group->getSize(), " after ",
      c10::str(int64_t(seconds * 10) / 10, ".", int64_t(seconds * 10) % 10),
      " s: ", firstSentence(cause), ".", late);
}

void runNamed(const CollectiveName &name, const std::function<void()> &action) {
  try {
    action();
  } catch (const c10::Error &error) {
    raise(name, error.what_without_backtrace());
  } catch (const std::exception &error) {
    raise(name, error.what());
  }
}

/// Waits for the collective, and announces it after a second unless it is a
/// message between two ranks. The backend's own timeout ends the wait.
void waitAndAnnounce(const CollectiveName &name, c10d::Work &work) {
  StepPause pause;
  if (announced().remove()) // an earlier collective, which failed
    Arrivals(name).update();
  if (name.isMessage()) { // a wait that times out would break the connection
    work.wait();
    return;
  }
  try {
    work.wait(kAnnounceAfter);
    return;
  } catch (...) {
    if (work.isCompleted())
      throw;
  }
  Arrivals arrivals(name);
  arrivals.announce();
  work.wait();
  arrivals.withdraw();
}

//===----------------------------------------------------------------------===//
// Signatures that ranks exchange with option check_collectives
//===----------------------------------------------------------------------===//

Tensor packed(const std::string &text) {
  Tensor bytes = at::zeros({kTextBytes}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), text.data(),
              std::min<size_t>(text.size(), kTextBytes - 1));
  return bytes;
}

/// The collective that a rank is about to begin.
struct RankCall {
  std::string what, place;
};

std::vector<RankCall> gatherNames(const CollectiveName &name) {
  Tensor mine = packed(
      c10::str(name.number, ": ", name.signature, "\n", placeText(name.place)));
  Tensor all = at::empty({name.group->getSize(), kTextBytes}, at::kByte);
  std::vector<Tensor> inputs = {mine};
  std::vector<std::vector<Tensor>> outputs = {all.unbind()};
  runNamed(name, [&] {
    auto work = name.group->getBackend(c10::DeviceType::Lazy)
                    ->allgather(outputs, inputs);
    waitAndAnnounce(name, *work);
  });
  std::vector<RankCall> ranks;
  for (const Tensor &bytes : outputs[0]) {
    std::string text(static_cast<const char *>(bytes.const_data_ptr()));
    size_t end = std::min(text.find('\n'), text.size());
    ranks.push_back(
        {text.substr(0, end), end < text.size() ? text.substr(end + 1) : ""});
  }
  return ranks;
}

/// "17: all_reduce(sum) of 8 Float on rank 0 at train.py:31; ... on ranks 1, 2"
std::string differencesOf(const std::vector<RankCall> &ranks) {
  std::string text;
  std::vector<bool> isListed(ranks.size(), false);
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (isListed[rank])
      continue;
    std::string list;
    size_t count = 0;
    for (size_t other = rank; other < ranks.size(); ++other) {
      if (ranks[other].what != ranks[rank].what)
        continue;
      isListed[other] = true;
      if (++count <= kMaxRanksNamed)
        list += (list.empty() ? "" : ", ") + std::to_string(other);
    }
    if (count > kMaxRanksNamed)
      list += c10::str(" and ", count - kMaxRanksNamed, " more");
    text += c10::str(text.empty() ? "" : "; ", ranks[rank].what, " on rank",
                     count > 1 ? "s " : " ", list, ranks[rank].place);
  }
  return text;
}

} // namespace

void torch_ltc::notePlaceOfCollective(int64_t number, LocationId place) {
  places().note(number, place);
}

LocationId torch_ltc::placeOfCollective(int64_t number) {
  return places().find(number);
}

CollectiveName torch_ltc::nameCollective(const BackendCall &call,
                                         int64_t number, const Tensor &input,
                                         const Tensor &output) {
  CollectiveName name;
  name.group = groupOfNumber(call.group);
  name.signature = signatureOf(call, input, output);
  bool isMessage = call.kind == "send" || call.kind.starts_with("receive");
  if (!isMessage)
    name.number = nextNumberIn(name.group->getGroupName());
  name.place = placeOfCollective(number);
  name.begin = steady_clock::now();
  return name;
}

CollectiveName torch_ltc::nameCpuCollective(const std::string &op,
                                            const ProcessGroupPtr &group) {
  CollectiveName name;
  name.group = group;
  name.signature = op;
  name.number = nextNumberIn(group->getGroupName());
  name.place = captureLocation();
  name.begin = steady_clock::now();
  return name;
}

void torch_ltc::checkRanksAgree(const CollectiveName &name) {
  if (!config().check_collectives.get() || name.isMessage())
    return;
  std::vector<RankCall> ranks = gatherNames(name);
  bool areEqual =
      std::all_of(ranks.begin(), ranks.end(), [&](const RankCall &rank) {
        return rank.what == ranks[0].what;
      });
  TORCH_CHECK(areEqual, "the ranks of group '", name.group->getGroupName(),
              "' begin different collectives: ", differencesOf(ranks));
}

void torch_ltc::beginNamed(const CollectiveName &name,
                           const std::function<void()> &begin) {
  runNamed(name, begin);
}

void torch_ltc::waitNamed(const CollectiveName &name, c10d::Work &work) {
  runNamed(name, [&] { waitAndAnnounce(name, work); });
}
