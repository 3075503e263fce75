// SPDX-License-Identifier: BSD-3-Clause
// Writes the events of every rank, then the definitions.
#include "profiles/render/otf2.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>

#include "profiles/base/errors.hpp"

#ifdef LATECOMER_OTF2
#include <otf2/otf2.h>

namespace latecomer::profiles {
namespace {

void must(OTF2_ErrorCode code) {
  if (code != OTF2_SUCCESS) throw std::runtime_error(std::string("OTF2: ") + OTF2_Error_GetDescription(code));
}
template <typename T>
T* must(T* made) {
  if (!made) throw std::runtime_error("OTF2 cannot create the archive");
  return made;
}

OTF2_FlushType flush(void*, OTF2_FileType, OTF2_LocationRef, void*, bool) { return OTF2_FLUSH; }
OTF2_ErrorCode silent(void*, const char*, std::uint64_t, const char*, OTF2_ErrorCode code, const char*, va_list) {
  return code;
}

OTF2_CollectiveOp number_of(core::Collective op) {
  using enum core::Collective;
  switch (op) {
    case barrier:
      return OTF2_COLLECTIVE_OP_BARRIER;
    case bcast:
      return OTF2_COLLECTIVE_OP_BCAST;
    case gather:
      return OTF2_COLLECTIVE_OP_GATHER;
    case gatherv:
      return OTF2_COLLECTIVE_OP_GATHERV;
    case scatter:
      return OTF2_COLLECTIVE_OP_SCATTER;
    case scatterv:
      return OTF2_COLLECTIVE_OP_SCATTERV;
    case allgather:
    case neighbor_allgather:
      return OTF2_COLLECTIVE_OP_ALLGATHER;
    case allgatherv:
    case neighbor_allgatherv:
      return OTF2_COLLECTIVE_OP_ALLGATHERV;
    case alltoall:
    case neighbor_alltoall:
      return OTF2_COLLECTIVE_OP_ALLTOALL;
    case alltoallv:
    case neighbor_alltoallv:
      return OTF2_COLLECTIVE_OP_ALLTOALLV;
    case alltoallw:
    case neighbor_alltoallw:
      return OTF2_COLLECTIVE_OP_ALLTOALLW;
    case allreduce:
      return OTF2_COLLECTIVE_OP_ALLREDUCE;
    case reduce:
      return OTF2_COLLECTIVE_OP_REDUCE;
    case reduce_scatter:
      return OTF2_COLLECTIVE_OP_REDUCE_SCATTER;
    case reduce_scatter_block:
      return OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK;
    case scan:
      return OTF2_COLLECTIVE_OP_SCAN;
    case exscan:
      return OTF2_COLLECTIVE_OP_EXSCAN;
  }
  return OTF2_COLLECTIVE_OP_BARRIER;
}

class Archive {
 public:
  Archive(const Profile& profile, const RecordedArrivals& record, const std::string& folder)
      : profile_(profile),
        record_(record),
        archive_(must(OTF2_Archive_Open(folder.c_str(), "traces", OTF2_FILEMODE_WRITE, 1 << 20, 4 << 20,
                                        OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE)),
                 OTF2_Archive_Close) {}

  std::size_t write() {
    static const OTF2_FlushCallbacks callbacks{flush, nullptr};
    must(OTF2_Archive_SetFlushCallbacks(archive_.get(), &callbacks, nullptr));
    must(OTF2_Archive_SetSerialCollectiveCallbacks(archive_.get()));
    must(OTF2_Archive_SetCreator(archive_.get(), "latecomer"));
    must(OTF2_Archive_OpenEvtFiles(archive_.get()));
    for (std::size_t rank = 0; rank < record_.ranks.size(); ++rank) write_events(rank);
    must(OTF2_Archive_CloseEvtFiles(archive_.get()));
    write_definitions();
    return left_out_;
  }

 private:
  enum Region : OTF2_RegionRef { kWaiting, kAfterLast, kOfSites };
  enum Attribute : OTF2_AttributeRef { kAwaited, kBytes, kAlgorithm };

  static OTF2_RegionRef region_of(std::size_t site) { return static_cast<OTF2_RegionRef>(kOfSites + site); }

  OTF2_StringRef text(const std::string& value) {
    return texts_.try_emplace(value, static_cast<OTF2_StringRef>(texts_.size())).first->second;
  }

  void write_events(std::size_t rank) {
    OTF2_EvtWriter* const events = must(OTF2_Archive_GetEvtWriter(archive_.get(), rank));
    const std::unique_ptr<OTF2_AttributeList, OTF2_ErrorCode (*)(OTF2_AttributeList*)> attributes(
        OTF2_AttributeList_New(), OTF2_AttributeList_Delete);
    const auto slice = [&](core::Nanoseconds from, core::Nanoseconds to, Region region) {
      must(OTF2_EvtWriter_Enter(events, attributes.get(), static_cast<OTF2_TimeStamp>(from), region));
      must(OTF2_EvtWriter_Leave(events, nullptr, static_cast<OTF2_TimeStamp>(to), region));
    };
    for (const Visit& visit : record_.ranks[rank]) {
      if (!visit.nested) {
        ++left_out_;
        continue;
      }
      const RecordedCall& call = record_.calls[visit.call];
      const core::Nanoseconds arrival = call.arrivals[visit.position], exit = call.exits[visit.position],
                              after = std::max(arrival, call.last);
      const auto region = region_of(call.site);
      last_ = std::max(last_, exit);
      must(OTF2_AttributeList_AddStringRef(attributes.get(), kAlgorithm, text(call.algorithm)));
      if (call.bytes >= 0)
        must(OTF2_AttributeList_AddUint64(attributes.get(), kBytes, static_cast<std::uint64_t>(call.bytes)));
      must(OTF2_EvtWriter_Enter(events, attributes.get(), static_cast<OTF2_TimeStamp>(arrival), region));
      must(OTF2_EvtWriter_MpiCollectiveBegin(events, nullptr, static_cast<OTF2_TimeStamp>(arrival)));
      if (const auto awaited = call.awaited[visit.position]; awaited >= 0) {
        must(OTF2_AttributeList_AddInt32(attributes.get(), kAwaited,
                                         record_.groups[call.group][static_cast<std::size_t>(awaited)]));
        slice(arrival, call.wait_ends[visit.position], kWaiting);
      }
      if (after < exit) slice(after, exit, kAfterLast);
      // The bytes that a rank sends and receives are not known.
      must(OTF2_EvtWriter_MpiCollectiveEnd(
          events, nullptr, static_cast<OTF2_TimeStamp>(exit), number_of(call.op), static_cast<OTF2_CommRef>(call.group),
          call.root >= 0 ? static_cast<std::uint32_t>(call.root) : OTF2_COLLECTIVE_ROOT_NONE, 0, 0));
      must(OTF2_EvtWriter_Leave(events, nullptr, static_cast<OTF2_TimeStamp>(exit), region));
    }
    std::uint64_t written = 0;
    must(OTF2_EvtWriter_GetNumberOfEvents(events, &written));
    numbers_.push_back(written);
    must(OTF2_Archive_CloseEvtWriter(archive_.get(), events));
  }

  /// Every text is written before the definition that names it.
  OTF2_StringRef written(OTF2_GlobalDefWriter* to, const std::string& value) {
    const OTF2_StringRef self = text(value);
    if (self >= texts_written_.size()) texts_written_.resize(self + 1);
    if (!texts_written_[self]) must(OTF2_GlobalDefWriter_WriteString(to, self, value.c_str()));
    texts_written_[self] = true;
    return self;
  }

  void write_definitions() {
    const std::size_t ranks = record_.ranks.size();
    // A location without events needs its definition file, too.
    must(OTF2_Archive_OpenDefFiles(archive_.get()));
    for (std::size_t rank = 0; rank < ranks; ++rank)
      must(OTF2_Archive_CloseDefWriter(archive_.get(), must(OTF2_Archive_GetDefWriter(archive_.get(), rank))));
    must(OTF2_Archive_CloseDefFiles(archive_.get()));
    OTF2_GlobalDefWriter* const to = must(OTF2_Archive_GetGlobalDefWriter(archive_.get()));
    const auto string = [&](const std::string& value) { return written(to, value); };
    must(OTF2_GlobalDefWriter_WriteClockProperties(to, 1'000'000'000, 0, static_cast<std::uint64_t>(last_) + 1,
                                                   OTF2_UNDEFINED_TIMESTAMP));
    for (const auto& [value, self] : std::map<std::string, OTF2_StringRef>(texts_)) string(value);
    const OTF2_StringRef nothing = string("");
    must(OTF2_GlobalDefWriter_WriteParadigm(to, OTF2_PARADIGM_MPI, string("MPI"), OTF2_PARADIGM_CLASS_PROCESS));
    const auto attribute = [&](Attribute self, const char* name, OTF2_Type type) {
      must(OTF2_GlobalDefWriter_WriteAttribute(to, self, string(name), nothing, type));
    };
    attribute(kAwaited, "awaited rank", OTF2_TYPE_INT32);
    attribute(kBytes, "bytes", OTF2_TYPE_UINT64);
    attribute(kAlgorithm, "algorithm", OTF2_TYPE_STRING);
    must(OTF2_GlobalDefWriter_WriteRegion(to, kWaiting, string("waiting"), string("waiting"),
                                          string("until the arrival of the awaited rank"), OTF2_REGION_ROLE_ARTIFICIAL,
                                          OTF2_PARADIGM_MPI, OTF2_REGION_FLAG_NONE, nothing, 0, 0));
    must(OTF2_GlobalDefWriter_WriteRegion(to, kAfterLast, string("after the last arrival"),
                                          string("after the last arrival"), nothing, OTF2_REGION_ROLE_ARTIFICIAL,
                                          OTF2_PARADIGM_MPI, OTF2_REGION_FLAG_NONE, nothing, 0, 0));
    for (const Site& site : profile_.sites) {
      const analysis::NamedFrame::Name& name = site.frames.front().name;
      const auto line = static_cast<std::uint32_t>(name.line);
      must(OTF2_GlobalDefWriter_WriteRegion(to, region_of(site.index), string(site.op + " at " + site.place()),
                                            string("MPI_" + site.op), string("site " + site.id),
                                            OTF2_REGION_ROLE_COLL_OTHER, OTF2_PARADIGM_MPI, OTF2_REGION_FLAG_NONE,
                                            name.file.empty() ? nothing : string(name.file), line, line));
    }
    must(OTF2_GlobalDefWriter_WriteSystemTreeNode(to, 0, string("job"), string("machine"),
                                                  OTF2_UNDEFINED_SYSTEM_TREE_NODE));
    std::map<std::string, OTF2_SystemTreeNodeRef> hosts;
    const std::vector<std::string>& names = profile_.hosts;
    std::vector<std::uint64_t> all;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const auto [host, added] = hosts.try_emplace(names[rank], static_cast<OTF2_SystemTreeNodeRef>(hosts.size() + 1));
      if (added)
        must(OTF2_GlobalDefWriter_WriteSystemTreeNode(to, host->second, string(host->first), string("node"), 0));
      const auto self = static_cast<OTF2_LocationGroupRef>(rank);
      must(OTF2_GlobalDefWriter_WriteLocationGroup(to, self, string("rank " + std::to_string(rank)),
                                                   OTF2_LOCATION_GROUP_TYPE_PROCESS, host->second,
                                                   OTF2_UNDEFINED_LOCATION_GROUP));
      must(OTF2_GlobalDefWriter_WriteLocation(to, rank, string("main thread"), OTF2_LOCATION_TYPE_CPU_THREAD,
                                              numbers_[rank], self));
      all.push_back(rank);
    }
    must(OTF2_GlobalDefWriter_WriteGroup(to, 0, nothing, OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI,
                                         OTF2_GROUP_FLAG_NONE, static_cast<std::uint32_t>(ranks), all.data()));
    for (std::size_t i = 0; i < record_.groups.size(); ++i) {
      const std::vector<std::uint64_t> members(record_.groups[i].begin(), record_.groups[i].end());
      const auto group = static_cast<OTF2_GroupRef>(i + 1);
      must(OTF2_GlobalDefWriter_WriteGroup(to, group, nothing, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI,
                                           OTF2_GROUP_FLAG_NONE, static_cast<std::uint32_t>(members.size()),
                                           members.data()));
      must(OTF2_GlobalDefWriter_WriteComm(to, static_cast<OTF2_CommRef>(i),
                                          string("communicator of " + std::to_string(members.size()) + " ranks"), group,
                                          OTF2_UNDEFINED_COMM, OTF2_COMM_FLAG_NONE));
    }
    must(OTF2_Archive_CloseGlobalDefWriter(archive_.get(), to));
  }

  const Profile& profile_;
  const RecordedArrivals& record_;
  std::unique_ptr<OTF2_Archive, OTF2_ErrorCode (*)(OTF2_Archive*)> archive_;
  std::map<std::string, OTF2_StringRef> texts_;
  std::vector<bool> texts_written_;
  std::vector<std::uint64_t> numbers_;  // [ranks]: of events
  core::Nanoseconds last_ = 0;
  std::size_t left_out_ = 0;
};

}  // namespace

std::size_t write_otf2(const Profile& profile, const RecordedArrivals& record, const std::string& folder) {
  if (std::filesystem::exists(folder)) throw BadUsage("--otf2: '" + folder + "' is there already; name a new folder");
  OTF2_Error_RegisterCallback(silent, nullptr);
  return Archive(profile, record, folder).write();
}

}  // namespace latecomer::profiles

#else

namespace latecomer::profiles {

std::size_t write_otf2(const Profile&, const RecordedArrivals&, const std::string&) {
  throw BadUsage("--otf2: this latecomer was built without OTF2; install libotf2-trace-dev and build it again");
}

}  // namespace latecomer::profiles

#endif
