// SPDX-License-Identifier: BSD-3-Clause
// Figures 5 to 8 of Axtmann, Wiebigke and Sanders 2018 in a modelled cluster: range communicators beside communicators
// that all members create together. Janus Quicksort is the example's code. Collectives are core's schedules, run by the
// executor's runner. Only messages and time are modelled. Two runs print the same figures.
//
// A message of m bytes occupies the sender's port for alpha + m beta, then the receiver's port, overlapped, and is in
// flight for the network's latency. No message waits for its receive. Messages of ranges include the envelope.
// Computation takes the times of Figures. An MPI communicator costs the least that MPICH 4 does: the members agree on a
// context by an allreduce of a mask, and each member writes a table of all. MPI_Comm_split precedes this by an
// allgather of color and key over the parent. Such a creation blocks its process.
//
// Usage: ranges_cluster [most ranks [most elements per rank]]
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <tuple>

#include "core/select/by_call.hpp"
#include "examples/janus_quicksort.hpp"
#include "shim/runner/running.hpp"

namespace {

namespace core = latecomer::core;
namespace shim = latecomer::shim;
using Kind = core::Collective;
using janus::Count;

struct Figures {
  core::Network network;
  double message_ns = 300;  // processor time per message and side; chosen, not measured
  double member_ns = 10;    // per member, to write the table of an MPI communicator; chosen, not measured
  double element_ns = 1.5;  // to compare and move an element once; chosen, not measured
  double range_ns = 10;     // to create a range; chosen, not measured
  Count envelope = 40, short_message = 8192;  // derived from shim/range/hub.cpp and shim/mpi/progress.hpp
  static constexpr Count mask = 260;          // bytes of MPICH's mask of contexts and one flag
};

/// The fields that a receive must match.
struct Key {
  int first, size, stride, depth, context;
  int tag;
  std::uint32_t collective;  // 0: point to point
  bool operator==(const Key&) const = default;
};
Key key_of(const latecomer_range& r, int tag, std::uint32_t collective = 0) {
  return {r.first, r.size, r.stride, r.depth, r.context, tag, collective};
}
struct Message {
  Key key;
  int source = -1, destination = -1;
  Count bytes = 0;
  std::vector<char> data;  // empty if no process reads the data
};

class Process;

class Cluster {
 public:
  explicit Cluster(int ranks, const Figures& figures);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;
  Process& at(int rank) { return *processes_[static_cast<std::size_t>(rank)]; }
  void send(Message message, double when);
  void wake(int rank, double when) { events_.push({when, next_++, rank, {}}); }
  /// Runs all events. Returns the time in ns at which the last process ended.
  double run();
  std::shared_ptr<core::Instance> instance(const core::Call& call);

  const Figures figures;
  std::int64_t messages = 0;

 private:
  struct Event {
    double when;
    std::int64_t number;
    int rank;
    std::shared_ptr<Message> message;
    bool operator<(const Event& o) const { return when != o.when ? when > o.when : number > o.number; }
  };
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<double> send_free_, receive_free_;
  std::priority_queue<Event> events_;
  std::int64_t next_ = 0;
  std::map<std::tuple<Kind, int, int, core::Elements, core::Bytes>, std::shared_ptr<core::Instance>> instances_;
  std::size_t instances_size_ = 0;
};

/// A collective on a range, or a step in the creation of a communicator.
class Operation final : private shim::Wire {
 public:
  Operation(Process& process, const latecomer_range& range, Kind op, int root, core::Elements count, MPI_Datatype type,
            core::Bytes element_bytes, const void* in, void* out);
  void step();
  bool complete = false;

 private:
  int send(const void* data, MPI_Count count, MPI_Datatype, core::Rank to, int channel, void** ticket) override;
  int receive(void* data, MPI_Count count, MPI_Datatype, core::Rank from, int channel, void** ticket) override;
  bool done(void* ticket, int* rc) override;
  void drop(void*) override {}
  struct Awaited {
    Key key;
    int source;
    char* data;
  };
  Key key(int channel) const { return key_of(range_, channel, number_); }

  Process& process_;
  const latecomer_range range_;
  std::uint32_t number_;
  core::Bytes element_bytes_;
  std::shared_ptr<core::Instance> instance_;
  std::unique_ptr<shim::Compiled> program_;
  shim::Running running_;
  std::vector<char> scratch_;
  std::deque<Awaited> awaited_;
};

class Process {
 public:
  Process(Cluster& cluster, int rank) : cluster(cluster), rank(rank) {}
  Cluster& cluster;
  const int rank;
  double now = 0, finished = 0;
  std::list<std::shared_ptr<Message>> arrived;
  std::function<bool()> go_on;  // advances the program; returns whether anything moved
  std::function<bool()> over;

  void spend(double ns) { now += ns; }
  std::uint32_t number(const latecomer_range& r) { return ++numbers_[{r.first, r.size, r.stride, r.depth, r.context}]; }
  void drive(std::shared_ptr<Operation> operation) { operations_.push_back(std::move(operation)); }
  /// Creates a communicator and blocks meanwhile. `split_of`: MPI_Comm_split of all of its ranks creates it, or
  /// nullptr.
  void create(const latecomer_range& range, const latecomer_range* split_of = nullptr) {
    creations_.push_back({range, split_of ? std::optional(*split_of) : std::nullopt, nullptr, 0});
  }
  bool blocked() const { return !creations_.empty(); }
  std::shared_ptr<Message> take(const Key& key, int source) {
    for (auto at = arrived.begin(); at != arrived.end(); ++at) {
      const Key& k = (*at)->key;
      Key wanted = key;
      if (key.tag == MPI_ANY_TAG) wanted.tag = k.tag;
      if (!(k == wanted) || (source != MPI_ANY_SOURCE && source != (*at)->source)) continue;
      auto out = std::move(*at);
      arrived.erase(at);
      spend(cluster.figures.message_ns);
      return out;
    }
    return nullptr;
  }
  void progress();

 private:
  struct Creation {
    latecomer_range range;
    std::optional<latecomer_range> parent;
    std::shared_ptr<Operation> operation;
    int stage;
    std::array<char, Figures::mask> mask = {}, agreed = {};
  };
  bool create_on();
  std::vector<std::shared_ptr<Operation>> operations_;
  std::deque<Creation> creations_;
  std::map<std::tuple<int, int, int, int, int>, std::uint32_t> numbers_;
};

Cluster::Cluster(int ranks, const Figures& f)
    : figures(f), send_free_(static_cast<std::size_t>(ranks)), receive_free_(static_cast<std::size_t>(ranks)) {
  for (int r = 0; r < ranks; ++r) processes_.push_back(std::make_unique<Process>(*this, r));
}
Cluster::~Cluster() = default;

void Cluster::send(Message message, double when) {
  ++messages;
  const core::Network& n = figures.network;
  double &out = send_free_[static_cast<std::size_t>(message.source)],
         &in = receive_free_[static_cast<std::size_t>(message.destination)];
  const double port = n.alpha_ns + static_cast<double>(message.bytes) * n.beta_ns_per_byte;
  const double leaves = std::max(when, out);
  out = leaves + port;
  in = std::max(leaves, in) + port;
  const int to = message.destination;
  events_.push({in + n.flight_ns(message.bytes), next_++, to, std::make_shared<Message>(std::move(message))});
}

double Cluster::run() {
  for (const auto& p : processes_) wake(p->rank, 0);
  while (!events_.empty()) {
    const Event e = events_.top();
    events_.pop();
    Process& p = at(e.rank);
    p.now = std::max(p.now, e.when);
    if (e.message) p.arrived.push_back(e.message);
    p.progress();
  }
  double last = 0;
  for (const auto& p : processes_) {
    if (!p->over()) {
      std::fprintf(stderr, "ranges_cluster: process %d of %zu never ended\n", p->rank, processes_.size());
      std::exit(1);
    }
    last = std::max(last, p->finished);
  }
  return last;
}

std::shared_ptr<core::Instance> Cluster::instance(const core::Call& call) {
  auto& known = instances_[{call.op, call.ranks, call.root, call.count, call.element_bytes}];
  if (!known) {
    known = std::make_shared<core::Instance>(call, core::Pattern(), core::Parameters{});
    instances_size_ += static_cast<std::size_t>(call.ranks);
    const auto mine = known;
    if (instances_size_ > 50'000'000) {
      instances_.clear();
      instances_size_ = 0;
    }
    return mine;
  }
  return known;
}

Operation::Operation(Process& process, const latecomer_range& range, Kind op, int root, core::Elements count,
                     MPI_Datatype type, core::Bytes element_bytes, const void* in, void* out)
    : process_(process), range_(range), number_(process.number(range)), element_bytes_(element_bytes) {
  core::Call call;
  call.op = op;
  call.ranks = range.size;
  call.root = root;
  call.count = count;
  call.element_bytes = element_bytes;
  instance_ = process.cluster.instance(call);
  const char* const name = op == Kind::scan        ? "doubling"
                           : op == Kind::allgather ? "bruck"
                                                   : core::native_stand_in(call)->name.data();
  program_ =
      std::make_unique<shim::Compiled>(core::materialize(*core::find_algorithm(op, name), *instance_, range.rank));
  // Elements that no process reads take no memory.
  const bool real = in || out;
  const MPI_Count extent = real ? element_bytes : 0;
  const shim::Layout layout{extent, 0, extent, 0, extent, extent, true};
  running_.begin_schedule(*program_, {MPI_COMM_SELF, 0, {}, 0, this}, nullptr);
  if (real) scratch_.resize(layout.bytes_for(program_->scratch) + 64);
  running_.give_scratch(scratch_.data(), layout);
  running_.set_buffers(static_cast<char*>(const_cast<void*>(in)), static_cast<char*>(out), type, MPI_SUM, layout);
}

void Operation::step() {
  bool moved = true;
  while (moved && !running_.done()) running_.step(moved);
  complete = running_.done();
}

int Operation::send(const void* data, MPI_Count count, MPI_Datatype, core::Rank to, int channel, void** ticket) {
  process_.spend(process_.cluster.figures.message_ns);
  Message m{key(channel), process_.rank, range_.first + to * range_.stride, count * element_bytes_, {}};
  if (!scratch_.empty()) m.data.assign(static_cast<const char*>(data), static_cast<const char*>(data) + m.bytes);
  process_.cluster.send(std::move(m), process_.now);
  *ticket = this;  // invalid from here on
  return MPI_SUCCESS;
}
int Operation::receive(void* data, MPI_Count, MPI_Datatype, core::Rank from, int channel, void** ticket) {
  awaited_.push_back({key(channel), range_.first + from * range_.stride, static_cast<char*>(data)});
  *ticket = &awaited_.back();
  return MPI_SUCCESS;
}
bool Operation::done(void* ticket, int* rc) {
  *rc = MPI_SUCCESS;
  if (ticket == this) return true;
  const auto& a = *static_cast<Awaited*>(ticket);
  const auto message = process_.take(a.key, a.source);
  if (message && !message->data.empty()) std::memcpy(a.data, message->data.data(), message->data.size());
  return message != nullptr;
}

/// Advances the first pending creation. Returns true if it is complete.
bool Process::create_on() {
  Creation& c = creations_.front();
  const Figures& f = cluster.figures;
  if (c.operation) c.operation->step();
  while (!c.operation || c.operation->complete) {
    latecomer_range where = c.parent ? *c.parent : c.range;
    where.context = -1;
    if (c.operation) ++c.stage;
    if (c.stage == 0 && c.parent) {
      c.operation = std::make_shared<Operation>(*this, where, Kind::allgather, 0, 8, MPI_BYTE, 1, nullptr, nullptr);
    } else if (c.stage == (c.parent ? 1 : 0)) {
      if (c.parent) spend(f.element_ns * c.parent->size * std::log2(1.0 + c.parent->size));  // sort the keys
      c.operation = std::make_shared<Operation>(*this, where, Kind::allreduce, 0, f.mask / 4, MPI_INT, 4, c.mask.data(),
                                                c.agreed.data());
    } else {
      spend(f.member_ns * c.range.size);
      creations_.pop_front();
      return true;
    }
    c.operation->step();
  }
  return false;
}

void Process::progress() {
  for (bool moved = true; moved;) {
    moved = false;
    while (!creations_.empty() && create_on()) moved = true;
    for (std::size_t i = 0; i < operations_.size();) {
      operations_[i]->step();
      if (operations_[i]->complete) {
        operations_[i] = operations_.back();
        operations_.pop_back();
        moved = true;
      } else ++i;
    }
    if (creations_.empty() && !over()) moved = go_on() || moved;
  }
  if (over() && finished == 0) finished = now;
}

/// The operations that the example needs of a communicator. `kMpi`: creation blocks.
template <bool kMpi>
struct Modelled {
  struct Comm {
    latecomer_range range;
    Process* process;
  };
  using Request = std::shared_ptr<Operation>;
  static Comm world(const Comm& all) { return all; }
  static Comm beside(const Comm& all) {
    Comm out = all;
    ++out.range.context;
    return out;
  }
  static Comm part(const Comm& of, int first, int last) {
    Comm out = of;
    latecomer_range_create(&of.range, first, last, 1, &out.range);
    if constexpr (kMpi) of.process->create(out.range);
    else of.process->spend(of.process->cluster.figures.range_ns);
    return out;
  }
  static void release(Comm&) {}
  static int rank(const Comm& c) { return c.range.rank; }
  static int size(const Comm& c) { return c.range.size; }
  static void spend(const Comm& c, Count elements) {
    c.process->spend(c.process->cluster.figures.element_ns * static_cast<double>(elements));
  }
  static void begin(const Comm& c, std::shared_ptr<Operation> operation, Request* r) {
    operation->step();
    c.process->drive(operation);
    *r = std::move(operation);
  }
  static void ibcast(void* data, Count bytes, int root, const Comm& c, Request* r) {
    begin(c, std::make_shared<Operation>(*c.process, c.range, Kind::bcast, root, bytes, MPI_BYTE, 1, nullptr, data), r);
  }
  static void iscan(const Count* in, Count* out, int n, const Comm& c, Request* r) {
    begin(c, std::make_shared<Operation>(*c.process, c.range, Kind::scan, 0, n, MPI_INT64_T, 8, in, out), r);
  }
  static void iallgather(const Count* in, Count* out, int n, const Comm& c, Request* r) {
    begin(c, std::make_shared<Operation>(*c.process, c.range, Kind::allgather, 0, n, MPI_INT64_T, 8, in, out), r);
  }
  static void isend(const void* data, Count bytes, int to, int tag, const Comm& c, Request* r) {
    const Figures& f = c.process->cluster.figures;
    c.process->spend(f.message_ns);
    const Key key = key_of(c.range, tag);
    Message m{key, c.process->rank, c.range.first + to * c.range.stride, bytes + (kMpi ? 0 : f.envelope), {}};
    m.data.assign(static_cast<const char*>(data), static_cast<const char*>(data) + bytes);
    // Long data follow their envelope.
    if (!kMpi && bytes > f.short_message) c.process->spend(f.message_ns + f.network.alpha_ns);
    c.process->cluster.send(std::move(m), c.process->now);
    r->reset();
  }
  static bool all_done(std::vector<Request>& r) {
    return std::all_of(r.begin(), r.end(), [](const Request& one) { return !one || one->complete; });
  }
  template <typename Room>
  static bool take(int from, int tag, const Comm& c, Room room) {
    if (c.process->blocked()) return false;
    const Key key = key_of(c.range, tag);
    const auto m = c.process->take(key, from == MPI_ANY_SOURCE ? from : c.range.first + from * c.range.stride);
    if (!m) return false;
    std::memcpy(room(m->key.tag, static_cast<Count>(m->data.size())), m->data.data(), m->data.size());
    return true;
  }
  template <typename Room>
  static bool take_any(int tag, int tags, const Comm& c, Room room) {
    for (int t = tag; t < tag + tags; ++t)
      if (take(MPI_ANY_SOURCE, t, c, room)) return true;
    return false;
  }
};

latecomer_range all_of(Process& p, int ranks) {
  return {reinterpret_cast<latecomer_range_hub*>(&p), 0, ranks, 1, 0, 0, p.rank};
}
latecomer_range part(const latecomer_range& of, int first, int last) {
  latecomer_range out;
  latecomer_range_create(&of, first, last, 1, &out);
  return out;
}

struct Outcome {
  double ms;
  double messages;  // per rank
  int levels = 0;
};

template <bool kMpi>
Outcome sort(int ranks, Count each, janus::Assignment assignment, const Figures& figures) {
  using Comms = Modelled<kMpi>;
  using Sorter = janus::Sorter<Comms, double>;
  Cluster cluster(ranks, figures);
  std::vector<std::unique_ptr<Sorter>> sorters;
  for (int r = 0; r < ranks; ++r) {
    std::mt19937_64 random(static_cast<std::uint64_t>(r) + 1);
    std::vector<double> data(static_cast<std::size_t>(each));
    for (double& x : data) x = static_cast<double>(random());
    Process& p = cluster.at(r);
    sorters.push_back(
        std::make_unique<Sorter>(typename Comms::Comm{all_of(p, ranks), &p}, std::move(data), assignment, 1));
    Sorter& s = *sorters.back();
    p.go_on = [&s] { return s.step(); };
    p.over = [&s] { return s.done(); };
  }
  Outcome out{cluster.run() * 1e-6, 0, 0};
  out.messages = static_cast<double>(cluster.messages) / ranks;
  double last = -1;
  for (const auto& s : sorters) {
    out.levels = std::max(out.levels, s->statistics().levels);
    if (static_cast<Count>(s->sorted().size()) != each || !std::is_sorted(s->sorted().begin(), s->sorted().end()) ||
        s->sorted().front() < last) {
      std::fprintf(stderr, "ranges_cluster: the result is not sorted\n");
      std::exit(1);
    }
    last = s->sorted().back();
  }
  return out;
}

/// Every process runs the list of creations and broadcasts that `list(process)` returns.
struct Step {
  latecomer_range range;
  Count bytes = -1;     // of a broadcast from the range's first rank; -1: a creation
  bool blocks = false;  // an MPI communicator
  bool split = false;   // by MPI_Comm_split of all ranks
};
Outcome run_lists(int ranks, const Figures& figures, const std::function<std::vector<Step>(Process&)>& list) {
  Cluster cluster(ranks, figures);
  struct State {
    std::vector<Step> steps;
    std::size_t next = 0;
    std::shared_ptr<Operation> running;
  };
  std::vector<State> states(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    Process& p = cluster.at(r);
    State& s = states[static_cast<std::size_t>(r)];
    s.steps = list(p);
    p.over = [&s, &p] { return s.next == s.steps.size() && !p.blocked() && (!s.running || s.running->complete); };
    p.go_on = [&s, &p, ranks] {
      if ((s.running && !s.running->complete) || s.next == s.steps.size()) return false;
      const Step& step = s.steps[s.next++];
      s.running.reset();
      if (step.bytes >= 0) {
        s.running =
            std::make_shared<Operation>(p, step.range, Kind::bcast, 0, step.bytes, MPI_BYTE, 1, nullptr, nullptr);
        s.running->step();
        if (!s.running->complete) p.drive(s.running);
      } else if (step.blocks) {
        const latecomer_range all = all_of(p, ranks);
        p.create(step.range, step.split ? &all : nullptr);
      } else {
        p.spend(p.cluster.figures.range_ns);
      }
      return true;
    };
  }
  const double ns = cluster.run();
  return {ns * 1e-6, static_cast<double>(cluster.messages) / ranks, 0};
}

void creation(int most, const Figures& figures) {
  std::printf("Figure 5: both halves of a communicator, ms (messages per rank)\n%8s %16s %24s %24s\n", "ranks",
              "ranges", "Comm_create_group", "Comm_split");
  for (int p = 1 << 5; p <= most; p *= 4) {
    const auto half = [p](Process& me) {
      return part(all_of(me, p), me.rank < p / 2 ? 0 : p / 2, me.rank < p / 2 ? p / 2 - 1 : p - 1);
    };
    Outcome o[3];
    for (int way = 0; way < 3; ++way)
      o[way] = run_lists(p, figures, [&](Process& me) { return std::vector<Step>{{half(me), -1, way > 0, way == 2}}; });
    std::printf("%8d %9.5f (%4.1f) %17.3f (%4.1f) %17.3f (%4.1f)\n", p, o[0].ms, o[0].messages, o[1].ms, o[1].messages,
                o[2].ms, o[2].messages);
  }
  std::printf("\nFigure 6: chain of overlapping communicators of 4, ms\n%8s %16s %24s %24s\n", "ranks", "ranges",
              "cascaded", "alternating");
  for (int p = 31; p <= most; p = p * 4 + 3) {
    const int ranks = (p - 1) / 3 * 3 + 1;
    Outcome o[3];
    for (int way = 0; way < 3; ++way)
      o[way] = run_lists(ranks, figures, [&](Process& me) {
        std::vector<Step> steps;
        const latecomer_range all = all_of(me, ranks);
        const int k = me.rank / 3;  // the left communicator of its last rank ends here
        if (me.rank % 3 == 0 && k > 0) steps.push_back({part(all, me.rank - 3, me.rank), -1, way > 0, false});
        if (3 * k + 3 < ranks) steps.push_back({part(all, 3 * k, 3 * k + 3), -1, way > 0, false});
        if (way == 2 && k % 2 == 1 && steps.size() == 2) std::swap(steps[0], steps[1]);
        return steps;
      });
    std::printf("%8d %16.5f %24.3f %24.3f\n", ranks, o[0].ms, o[1].ms, o[2].ms);
  }
  std::printf(
      "\nFigure 7: creation of the first half of %d ranks and broadcasts there, time with MPI / time with ranges\n%10s "
      "%16s %16s\n",
      most, "doubles", "1 broadcast", "50 broadcasts");
  // Longer broadcasts use scatter and a ring of P^2 messages, which hide the cost of any creation.
  for (const Count n : {1, 16, 256, 1024}) {
    double ratio[2];
    for (const int many : {0, 1}) {
      Outcome o[2];
      for (int way = 0; way < 2; ++way)
        o[way] = run_lists(most, figures, [&](Process& me) {
          std::vector<Step> steps;
          if (me.rank >= most / 2) return steps;
          const latecomer_range half = part(all_of(me, most), 0, most / 2 - 1);
          steps.push_back({half, -1, way > 0, false});
          // A range's message has an envelope, and one more message above 8 KiB.
          for (int i = 0; i < (many ? 50 : 1); ++i)
            steps.push_back({half, n * 8 + (way == 0 ? figures.envelope : 0), false, false});
          return steps;
        });
      ratio[many] = o[1].ms / o[0].ms;
    }
    std::printf("%10lld %16.2f %16.2f\n", static_cast<long long>(n), ratio[0], ratio[1]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int most = argc > 1 ? std::atoi(argv[1]) : 1 << 15;
  const Count elements = argc > 2 ? std::atoll(argv[2]) : 256;
  if (most < 32 || elements < 1) {
    std::fprintf(stderr, "ranges_cluster: expected at least 32 ranks and 1 element per rank\n");
    MPI_Finalize();
    return 2;
  }
  Figures figures;
  figures.network = *core::network_preset("fdr");
  creation(most, figures);
  std::printf("\nFigure 8: Janus Quicksort, ms (messages per rank)\n%8s %8s %22s %22s %22s %10s %7s\n", "ranks",
              "n / P", "ranges, greedy", "ranges, deterministic", "MPI, greedy", "MPI/ranges", "levels");
  for (int p = 1 << 7; p <= most; p *= 4) {
    for (Count each = 1; each <= elements; each *= 16) {
      const Outcome greedy = sort<false>(p, each, janus::Assignment::greedy, figures),
                    even = sort<false>(p, each, janus::Assignment::deterministic, figures),
                    mpi = sort<true>(p, each, janus::Assignment::greedy, figures);
      std::printf("%8d %8lld %13.3f (%6.1f) %13.3f (%6.1f) %13.3f (%6.1f) %10.2f %7d\n", p,
                  static_cast<long long>(each), greedy.ms, greedy.messages, even.ms, even.messages, mpi.ms,
                  mpi.messages, mpi.ms / greedy.ms, greedy.levels);
      std::fflush(stdout);
    }
  }
  MPI_Finalize();
  return 0;
}
