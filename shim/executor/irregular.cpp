// SPDX-License-Identifier: BSD-3-Clause
// Implements Irregular, and builds the adaptive tree.
#include "shim/executor/irregular.hpp"

#include <algorithm>
#include <cstring>

#include "shim/log.hpp"
#include "shim/patience.hpp"
#include "shim/runner/packing.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {

int Irregular::begin_call(const Compiled& program, core::Collective op, Rank me, bool root, bool in_place,
                          const Operands& given) {
  program_ = &program;
  operands_ = given;
  me_ = me;
  root_ = root;
  scatters_ = core::is_scatter(op);
  held_.clear();
  taken_ = headers_used_ = 0;
  char* const sent = static_cast<char*>(const_cast<void*>(given.send));
  char* const received = static_cast<char*>(given.recv);
  int rc = MPI_SUCCESS;
  if (root) {
    all_ = scatters_ ? sent : received;
    all_type_ = scatters_ ? given.send_type : given.datatype;
    rc = all_layout_.read_type(all_type_);
  }
  own_ = in_place ? nullptr : scatters_ ? received : sent;
  own_type_ = scatters_ ? given.datatype : given.send_type;
  own_count_ = scatters_ ? given.count : given.send_count;
  if (rc == MPI_SUCCESS && !in_place) rc = own_layout_.read_type(own_type_);
  return rc;
}

char* Irregular::take_memory(MPI_Count bytes) {
  if (taken_ == memory_.size()) memory_.emplace_back();
  std::vector<char>& place = memory_[taken_++];
  if (place.size() < static_cast<std::size_t>(bytes)) place.resize(static_cast<std::size_t>(bytes));
  return place.data();
}

template <typename Visit>
int Irregular::each_block(core::OpId message, Visit visit) const {
  const core::Pieces* pieces = entry_of(program_->pieces, message);
  if (!pieces) return MPI_ERR_INTERN;
  for (const core::Slice& s : pieces->where)
    for (auto r = static_cast<Rank>(s.offset); r < static_cast<Rank>(s.end()); ++r) visit(r);
  return MPI_SUCCESS;
}

template <typename Use>
int Irregular::as_one(const std::vector<Part>& parts, Use use) {
  if (parts.empty()) return use(static_cast<void*>(nullptr), MPI_Count{0}, MPI_BYTE);
  if (parts.size() == 1) return use(const_cast<void*>(parts[0].place), parts[0].length, parts[0].type);
  std::vector<MPI_Count> lengths, places;
  std::vector<MPI_Datatype> types;
  for (const Part& p : parts) {
    lengths.push_back(p.length);
    places.push_back(static_cast<MPI_Count>(reinterpret_cast<std::intptr_t>(p.place)));
    types.push_back(p.type);
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int rc = PMPI_Type_create_struct_c(static_cast<MPI_Count>(parts.size()), lengths.data(), places.data(), types.data(),
                                     &type);
  if (rc == MPI_SUCCESS) rc = PMPI_Type_commit(&type);
  if (rc == MPI_SUCCESS) rc = use(MPI_BOTTOM, MPI_Count{1}, type);
  if (type != MPI_DATATYPE_NULL) PMPI_Type_free(&type);  // pending messages keep it
  return rc;
}

int Irregular::find_blocks(int first, int count, const std::int64_t*& sizes, char*& data, MPI_Count& bytes) const {
  if (held_.empty()) return MPI_ERR_INTERN;
  const Held& h = held_.front();
  const auto* all = reinterpret_cast<const std::int64_t*>(h.data);
  MPI_Count before = 0, here = 0, after = 0;
  for (int i = 0; i < h.count; ++i)
    (h.first + i < first ? before : h.first + i < first + count ? here : after) += all[i];
  const auto head = static_cast<MPI_Count>(static_cast<std::size_t>(h.count) * sizeof(std::int64_t));
  if (before < 0 || here < 0 || after < 0 || head + before + here + after != h.bytes) return MPI_ERR_TRUNCATE;
  sizes = all + (first - h.first);
  data = h.data + head + before;
  bytes = here;
  return MPI_SUCCESS;
}

int Irregular::send_blocks(const core::Operation& op, core::OpId id, Rank to, int tag, MPI_Comm comm,
                           MPI_Request* request) {
  if (op.src.buffer != core::Buffer::scratch)
    return PMPI_Isend_c(own_, own_count_, own_type_, to, tag, comm, request);  // a leaf
  const int first = static_cast<int>(op.src.offset), count = static_cast<int>(op.src.count);
  const auto sizes_part = [](const std::int64_t* sizes, int n) {
    return Part{sizes, static_cast<MPI_Count>(static_cast<std::size_t>(n) * sizeof(std::int64_t)), MPI_BYTE};
  };
  std::vector<Part> parts;
  int rc = MPI_SUCCESS;
  if (root_) {
    if (headers_used_ == headers_.size()) headers_.emplace_back();
    auto& header = headers_[headers_used_++];
    header.clear();
    rc = each_block(id, [&](Rank r) {
      const MPI_Count length = operands_.blocks.count(r);
      header.push_back(length * all_layout_.size);
      if (length > 0) parts.push_back({block_at(r), length, all_type_});
    });
    if (count > 1) parts.insert(parts.begin(), sizes_part(header.data(), count));
  } else if (scatters_) {
    const std::int64_t* sizes = nullptr;
    char* data = nullptr;
    MPI_Count bytes = 0;
    rc = find_blocks(first, count, sizes, data, bytes);
    if (count > 1) parts.push_back(sizes_part(sizes, count));
    parts.push_back({data, bytes, MPI_PACKED});
  } else {
    std::sort(held_.begin(), held_.end(), [](const Held& a, const Held& b) { return a.first < b.first; });
    int next = first;
    for (const Held& h : held_) {
      if (h.first != next) rc = MPI_ERR_INTERN;
      next += h.count;
      if (h.bytes > 0) parts.push_back({h.data, h.bytes, MPI_PACKED});
    }
  }
  if (rc != MPI_SUCCESS) return rc;
  return as_one(parts, [&](void* data, MPI_Count length, MPI_Datatype type) {
    return PMPI_Isend_c(data, length, type, to, tag, comm, request);
  });
}

int Irregular::bytes_of(core::OpId message, MPI_Count& bytes) const {
  bytes = 0;
  return each_block(message, [&](Rank r) { bytes += operands_.blocks.count(r) * all_layout_.size; });
}

int Irregular::receive_blocks(const core::Operation& op, core::OpId id, Rank from, int tag, MPI_Comm comm,
                              MPI_Request* request, bool& there) {
  there = true;
  if (op.dst.buffer != core::Buffer::scratch)
    return PMPI_Irecv_c(own_, own_count_, own_type_, from, tag, comm, request);  // a leaf
  MPI_Count expected = 0, bytes = 0;
  if (const int rc = root_ ? bytes_of(id, expected) : MPI_SUCCESS; rc != MPI_SUCCESS) return rc;
  const auto into_blocks = [&] {
    std::vector<Part> parts;
    each_block(id, [&](Rank r) {
      if (const MPI_Count length = operands_.blocks.count(r); length > 0)
        parts.push_back({block_at(r), length, all_type_});
    });
    return as_one(parts, [&](void* data, MPI_Count length, MPI_Datatype type) {
      return PMPI_Irecv_c(data, length, type, from, tag, comm, request);
    });
  };
  if (root_ && op.dst.count == 1) return into_blocks();
  int found = 0;
  MPI_Status status;
  // No other thread receives with the tags of this communicator, so the message stays there.
  int rc = PMPI_Iprobe(from, tag, comm, &found, &status);
  there = rc == MPI_SUCCESS && found;
  if (!there) return rc;
  rc = PMPI_Get_elements_x(&status, MPI_BYTE, &bytes);
  if (rc != MPI_SUCCESS) return rc;
  if (root_ && bytes == expected) return into_blocks();
  char* const data = take_memory(bytes);
  held_.push_back({static_cast<int>(op.dst.offset), static_cast<int>(op.dst.count), data, bytes});
  return PMPI_Irecv_c(data, bytes, MPI_PACKED, from, tag, comm, request);
}

int Irregular::accept_blocks(const core::Operation& op, core::OpId id, MPI_Count bytes) {
  // A rank that has failed sends nothing. Only the root of a gather knows the sizes of all blocks, and it notices that
  // data are missing.
  if (scatters_) {
    const bool wanted = op.dst.buffer == core::Buffer::scratch || own_count_ * own_layout_.size > 0;
    return bytes == 0 && wanted ? MPI_ERR_OTHER : MPI_SUCCESS;
  }
  if (!root_) return MPI_SUCCESS;
  MPI_Count expected = 0;
  if (const int rc = bytes_of(id, expected); rc != MPI_SUCCESS) return rc;
  if (bytes == 0 && expected > 0) return MPI_ERR_OTHER;
  if (bytes == expected || op.dst.count == 1) return MPI_SUCCESS;
  // MPI (4.0, section 6.5) forbids a block that is shorter than the root expects. In a message of several blocks it
  // would move all blocks behind it to a wrong place, so report it.
  warn("a gatherv's blocks have %lld bytes where the root expects %lld", static_cast<long long>(bytes),
       static_cast<long long>(expected));
  return MPI_ERR_TRUNCATE;
}

int Irregular::copy_blocks(const core::Operation& op, int self, int tag, MPI_Comm comm) {
  if (op.dst.count == 0) return MPI_SUCCESS;  // a meeting point of dependencies, or part of a message
  if (root_) {
    const MPI_Count count = operands_.blocks.count(me_);
    return scatters_ ? PMPI_Sendrecv_c(block_at(me_), count, all_type_, self, tag, own_, own_count_, own_type_, self,
                                       tag, comm, MPI_STATUS_IGNORE)
                     : PMPI_Sendrecv_c(own_, own_count_, own_type_, self, tag, block_at(me_), count, all_type_, self,
                                       tag, comm, MPI_STATUS_IGNORE);
  }
  const MPI_Count own_bytes = own_count_ * own_layout_.size;
  if (!scatters_) {
    char* data = own_;
    int rc = MPI_SUCCESS;
    if (!own_layout_.gapless) {
      data = take_memory(own_bytes);
      rc = pack_items(own_, own_count_, own_type_, data, own_bytes, comm);
    }
    held_.push_back({static_cast<int>(op.dst.offset), 1, data, own_bytes});
    return rc;
  }
  const std::int64_t* sizes = nullptr;
  char* data = nullptr;
  MPI_Count bytes = 0;
  if (const int rc = find_blocks(static_cast<int>(op.src.offset), 1, sizes, data, bytes); rc != MPI_SUCCESS) return rc;
  if (bytes > own_bytes) return MPI_ERR_TRUNCATE;  // the root sends more than fits
  if (own_layout_.gapless) {
    if (bytes > 0) std::memcpy(own_, data, static_cast<std::size_t>(bytes));
    return MPI_SUCCESS;
  }
  return own_layout_.size == 0 ? MPI_SUCCESS
                               : unpack_items(data, bytes, own_, bytes / own_layout_.size, own_type_, comm);
}

namespace {

/// The message from the first rank of a range to the first rank of the neighbouring range.
struct RangeNews {
  core::trees::Block block;
  std::int32_t holds_root;
};
/// The message from the first rank of a range to the root of its range.
struct Verdict {
  Rank peer;
  int first, count;  // the places that the peer has
  std::int32_t sends;
};
static_assert(std::is_trivially_copyable_v<RangeNews> && std::is_trivially_copyable_v<Verdict>);

}  // namespace

int build_adaptive(const CommState& state, const core::TreeProblem& costs, Rank root, core::Bytes size,
                   core::TreePart& part) {
  const int tag = tag_of(state.context, kTreeChannel);
  const Rank me = state.rank;
  const MPI_Comm comm = job_world().comm;
  const auto world = [&](Rank r) { return state.world[static_cast<std::size_t>(r)]; };
  const auto finish = [](MPI_Request* requests, int n) {
    Patience patience(job_rules().courteous);
    int rc = MPI_SUCCESS, done = 0;
    for (int i = 0; i < n && rc == MPI_SUCCESS; ++i)
      for (done = 0; !done && rc == MPI_SUCCESS;) {
        rc = PMPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
        if (!done) patience.wait();
      }
    return rc;
  };
  const double bytes = static_cast<double>(size);
  RangeNews mine{{me, 0, bytes, costs.gamma[0] * bytes, true}, me == root};
  bool collects = true;  // the root of its range so far
  part.first = part.own = me;
  int rc = MPI_SUCCESS;
  for (int d = 1; d < state.size && rc == MPI_SUCCESS; d *= 2) {
    const Rank left = me / (2 * d) * (2 * d), right = left + d;
    if (right >= state.size) continue;
    const int right_count = std::min(d, state.size - right);
    const bool in_left = me < right;
    const Rank first = in_left ? left : right;
    Verdict verdict{};
    if (me == first) {
      RangeNews other;
      MPI_Request both[2];
      rc = PMPI_Isend_c(&mine, sizeof mine, MPI_BYTE, world(in_left ? right : left), tag, comm, &both[0]);
      if (rc == MPI_SUCCESS)
        rc = PMPI_Irecv_c(&other, sizeof other, MPI_BYTE, world(in_left ? right : left), tag, comm, &both[1]);
      if (rc == MPI_SUCCESS) rc = finish(both, 2);
      if (rc != MPI_SUCCESS) return rc;
      const RangeNews &l = in_left ? mine : other, &r = in_left ? other : mine;
      bool leftwards = false;
      const core::trees::Block whole =
          core::trees::join(costs, l.block, r.block, l.holds_root, r.holds_root, true, leftwards);
      const Rank collector = mine.block.root;
      verdict = {in_left ? r.block.root : l.block.root, in_left ? right : left, in_left ? right_count : d,
                 in_left != leftwards};
      mine = {whole, l.holds_root | r.holds_root};
      if (collector != me) {
        MPI_Request request;
        rc = PMPI_Isend_c(&verdict, sizeof verdict, MPI_BYTE, world(collector), tag, comm, &request);
        if (rc == MPI_SUCCESS) rc = finish(&request, 1);
      }
    }
    if (!collects) continue;
    if (me != first) {
      MPI_Request request;
      rc = PMPI_Irecv_c(&verdict, sizeof verdict, MPI_BYTE, world(first), tag, comm, &request);
      if (rc == MPI_SUCCESS) rc = finish(&request, 1);
      if (rc != MPI_SUCCESS) return rc;
    }
    if (verdict.sends) {
      part.parent = verdict.peer;
      collects = false;
    } else {
      part.children.push_back({verdict.peer, verdict.first, verdict.count});
      part.first = std::min(part.first, verdict.first);
      part.count += verdict.count;
    }
  }
  return rc;
}

}  // namespace latecomer::shim
