// SPDX-License-Identifier: Apache-2.0
#include "trace/merge_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "trace/batches.h"
#include "trace/merge.h"
#include "trace/merge_events.h"
#include "trace/numbers.h"
#include "trace/printable.h"
#include "trace/wrapping.h"

namespace trace {
namespace {

// A top-level value that is larger is some log: it is no metadata of the run.
constexpr std::size_t kLargestTopLevel = 64 << 10;
constexpr std::int64_t kMostRanks = 1'000'000;

// Looks at every event's text while the reader builds the model of the file.
class Scanner : public EventSink {
 public:
  explicit Scanner(RankFile& file) : file_(file) {}

  void begin_list() override {
    if (++lists_ > 1) {
      throw MergeError(fmt::format("{} has several event lists: record it again", file_.name));
    }
  }

  bool add(std::string_view events, std::size_t capacity) override {
    return walker_.walk(events, capacity, [this](const EventPlaces& event) { see(event); });
  }

  void add_top_level(std::string_view key, std::string_view json) override {
    if (!is_json(fmt::format("{{\"{}\": {}}}", key, json))) return;
    if (key == "deviceProperties") {
      file_.devices = json;
    } else if (key == "distributedInfo") {
      read_rank(json);
    } else if (json.size() <= kLargestTopLevel) {
      const auto found = std::find_if(file_.top_level.begin(), file_.top_level.end(),
                                      [&](const auto& item) { return item.first == key; });
      if (found != file_.top_level.end()) found->second = json;
      if (found == file_.top_level.end()) file_.top_level.emplace_back(key, json);
    }
  }

 private:
  void see(const EventPlaces& event) {
    if (!event.pid.empty()) {
      if (event.pid.starts_with("\"rank ")) {
        throw MergeError(fmt::format(
            "{} is merged already (it has processes \"rank N: ...\"): merge the ranks' own files",
            file_.name));
      }
      const bool is_new = event.pid != last_pid_;
      if (is_new) process_ = &file_.processes[last_pid_ = std::string(event.pid)];
      process_->has_name |= event.is_metadata("\"process_name\"");
      process_->has_labels |= event.is_metadata("\"process_labels\"");
      process_->has_sort_index |= event.is_metadata("\"process_sort_index\"");
    }
    for (const IdPlace& place : event.ids) {
      std::int64_t id = 0;
      if (parse_id(place.token, id)) file_.max_id = std::max(file_.max_id, id);
    }
  }

  // The reader frames such values; that their inside is JSON nobody has looked at.
  static bool is_json(const std::string& text) {
    simdjson::dom::parser parser;
    return parser.parse(text).error() == simdjson::SUCCESS;
  }

  // A run of one process says "rank 0" whatever it was run for.
  void read_rank(std::string_view json) {
    const simdjson::padded_string text(json);
    simdjson::ondemand::parser parser;
    simdjson::ondemand::document document;
    simdjson::ondemand::object info;
    if (parser.iterate(text).get(document) || document.get_object().get(info)) return;
    std::int64_t rank = -1, world_size = 0;
    for (auto part : info) {
      simdjson::ondemand::field current;
      if (std::move(part).get(current)) return;
      const simdjson::ondemand::raw_json_string key = current.key();
      if (key == "rank") (void)parse_integer(current.value().raw_json_token(), rank);
      if (key == "world_size") (void)parse_integer(current.value().raw_json_token(), world_size);
    }
    if (rank >= 0 && rank < kMostRanks && world_size != 1) file_.rank_in_file = rank;
  }

  RankFile& file_;
  EventWalker walker_;
  std::string last_pid_;
  RankFile::Process* process_ = nullptr;
  int lists_ = 0;
};

// Something that ends on all ranks at once: a kernel of NCCL, or Gloo's own annotation. (NCCL's
// annotations are about the launch.)
bool is_collective(const Trace& trace, const Event& event) {
  const std::string_view name = trace.name(event);
  return (event.category == Category::kernel && event.is_timed && name.starts_with("nccl")) ||
         (event.category == Category::user_annotation && name.starts_with("gloo:"));
}

void find_collectives(const Trace& trace, RankFile& file) {
  std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>> found;
  for (const Event& event : trace.events) {
    if (!is_collective(trace, event)) continue;
    found[std::string(trace.name(event))].emplace_back(
        event.start_ns, wrapping_add(event.start_ns, event.duration_ns));
  }
  for (auto& [name, spans] : found) {
    std::sort(spans.begin(), spans.end());
    for (const auto& [start, end] : spans) file.collective_ends[name].push_back(end);
  }
}

void find_times(const Trace& trace, RankFile& file) {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::int64_t step = kNever;
  bool has_span = false;
  file.first_ns = kNever;
  file.last_ns = -kNever;
  for (const Event& event : trace.events) {
    if (!event.is_timed) continue;
    has_span |= event.category == Category::profiler_span;
    if (trace.name(event).starts_with("ProfilerStep#")) step = std::min(step, event.start_ns);
    file.first_ns = std::min(file.first_ns, event.start_ns);
    file.last_ns = std::max(file.last_ns, wrapping_add(event.start_ns, event.duration_ns));
  }
  file.start_ns = has_span || step == kNever ? trace.start_ns : step;
}

// Ops come from one process in a rank's file.
void check_processes(const Trace& trace, const RankFile& file) {
  std::set<TextId> with_ops;
  for (const Event& event : trace.events) {
    if (event.category == Category::cpu_op) with_ops.insert(trace.threads[event.thread].pid);
  }
  if (with_ops.size() < 2) return;
  throw MergeError(fmt::format(
      "{} holds the ops of {} processes, so it is no rank's own file: name one file for each rank",
      file.name, with_ops.size()));
}

std::optional<std::int64_t> number_at(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number >= kMostRanks) return std::nullopt;
  return number;
}

}  // namespace

std::optional<std::int64_t> rank_in_name(const std::string& file_name) {
  std::string name = file_name;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return c < 0x80 ? static_cast<char>(std::tolower(c)) : c; });
  for (std::size_t at = name.find("rank"); at != std::string::npos;
       at = name.find("rank", at + 1)) {
    std::string_view rest = std::string_view(name).substr(at + 4);
    if (!rest.empty() && std::string_view("-_.= ").find(rest.front()) != std::string_view::npos) {
      rest.remove_prefix(1);
    }
    if (const auto rank = number_at(rest)) return rank;
  }
  const std::string_view stem = std::string_view(name).substr(0, name.find('.'));
  const std::size_t bar = stem.rfind('_');
  if (bar == std::string_view::npos) return std::nullopt;
  const std::string_view digits = stem.substr(bar + 1);
  const bool is_number = !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
  return is_number ? number_at(digits) : std::nullopt;
}

RankFile scan(const std::filesystem::path& path, std::size_t position) {
  RankFile file;
  file.path = path;
  file.name = printable(path.string());
  file.position = position;
  file.rank_in_name = rank_in_name(path.filename().string());
  Scanner scanner(file);
  const Trace trace = read_in_batches(Input::open(path), kBatchSize, &scanner);
  check_processes(trace, file);
  file.base_ns = trace.base_ns;
  find_times(trace, file);
  find_collectives(trace, file);
  for (const std::string& warning : trace.report.warnings) {
    file.warnings.push_back(fmt::format("{}: {}", file.name, warning));
  }
  file.complete = trace.report.complete();
  return file;
}

}  // namespace trace
