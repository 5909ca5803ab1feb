// SPDX-License-Identifier: Apache-2.0
#include "trace/merge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "trace/batches.h"
#include "trace/files.h"
#include "trace/merge_events.h"
#include "trace/merge_scan.h"
#include "trace/wrapping.h"

namespace trace {
namespace {

// Viewers keep numbers as doubles, which hold whole numbers up to here.
constexpr std::int64_t kMostExact = std::int64_t{1} << 53;
constexpr std::int64_t kSortRoom = 1'000'000'000;  // Kineto's places are below 2^30

struct Plan {
  std::vector<RankFile> inputs;  // by rank, as report.files
  MergeReport report;
  std::int64_t base_ns = 0;
};

// -- Which rank a file is --------------------------------------------------------------------

MergedFile rank_of(const RankFile& file, bool by_name) {
  MergedFile merged{.name = file.name, .complete = file.complete};
  if (file.rank_in_file && !by_name) {
    merged.rank = *file.rank_in_file;
    merged.rank_source = "distributedInfo";
  } else if (file.rank_in_name) {
    merged.rank = *file.rank_in_name;
    merged.rank_source = "its name";
  } else {
    merged.rank = static_cast<std::int64_t>(file.position);
    merged.rank_source = "its position";
  }
  return merged;
}

// Two files of one rank; nullopt where there are none.
std::optional<std::pair<std::size_t, std::size_t>> twins(const std::vector<MergedFile>& files) {
  std::map<std::int64_t, std::size_t> seen;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto [place, is_new] = seen.try_emplace(files[i].rank, i);
    if (!is_new) return std::pair(place->second, i);
  }
  return std::nullopt;
}

void find_ranks(Plan& plan) {
  std::vector<MergedFile>& files = plan.report.files;
  for (const bool by_name : {false, true}) {
    files.clear();
    for (const RankFile& file : plan.inputs) files.push_back(rank_of(file, by_name));
    const bool all_named = std::all_of(plan.inputs.begin(), plan.inputs.end(),
                                       [](const RankFile& file) { return file.rank_in_name; });
    const auto same = twins(files);
    if (!same && by_name) {
      plan.report.warnings.push_back(
          "several files say that they are the same rank (distributedInfo): their names count");
    }
    if (!same) return;
    if (all_named && !by_name) continue;
    const auto [a, b] = *same;
    throw MergeError(fmt::format(
        "{} and {} are both rank {} (by {} and {}): name files of different ranks, \"rank0\" and "
        "\"rank1\" in their names where they do not say it themselves",
        files[a].name, files[b].name, files[a].rank, files[a].rank_source, files[b].rank_source));
  }
}

void sort_by_rank(Plan& plan) {
  std::vector<std::size_t> order(plan.inputs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return plan.report.files[a].rank < plan.report.files[b].rank;
  });
  std::vector<RankFile> inputs;
  std::vector<MergedFile> files;
  for (const std::size_t i : order) {
    inputs.push_back(std::move(plan.inputs[i]));
    files.push_back(std::move(plan.report.files[i]));
  }
  plan.inputs = std::move(inputs);
  plan.report.files = std::move(files);
}

// -- Ids and times ---------------------------------------------------------------------------

void move_ids(Plan& plan) {
  std::int64_t largest = 0;
  for (const RankFile& file : plan.inputs) largest = std::max(largest, file.max_id);
  std::int64_t room = 0, end = 0;
  const auto count = static_cast<std::int64_t>(plan.inputs.size());
  if (__builtin_add_overflow(largest, 1, &room) || __builtin_mul_overflow(room, count, &end)) {
    throw MergeError(fmt::format(
        "the ids of these files are too large to be told apart (up to {}, {} files): merge fewer",
        largest, count));
  }
  if (end > kMostExact) {
    plan.report.warnings.push_back(
        fmt::format("ids reach {}: viewers that keep numbers as doubles may mix them up", end));
  }
  for (std::int64_t i = 0; i < count; ++i) {
    plan.report.files[static_cast<std::size_t>(i)].id_offset = i * room;
  }
}

std::int64_t collective_shift(const RankFile& first, const RankFile& other) {
  std::vector<std::int64_t> shifts;
  bool counts_differ = false;
  for (const auto& [name, ends] : first.collective_ends) {
    const auto found = other.collective_ends.find(name);
    if (found == other.collective_ends.end()) continue;
    if (found->second.size() != ends.size()) {
      counts_differ = true;  // which one belongs to which is not known
      continue;
    }
    for (std::size_t i = 0; i < ends.size(); ++i) {
      shifts.push_back(wrapping_subtract(ends[i], found->second[i]));
    }
  }
  if (shifts.empty()) {
    throw MergeError(fmt::format(
        "{} and {} have no collective in common (kernels nccl..., annotations gloo:...){}: choose "
        "--align clock or --align start",
        first.name, other.name, counts_differ ? " of which both recorded the same number" : ""));
  }
  const auto middle = shifts.begin() + static_cast<std::ptrdiff_t>((shifts.size() - 1) / 2);
  std::nth_element(shifts.begin(), middle, shifts.end());
  return *middle;
}

// The smallest base that a file has; 0 where none has one.
std::int64_t common_base(const std::vector<RankFile>& files) {
  std::int64_t base = 0;
  for (const RankFile& file : files) {
    if (file.base_ns != 0 && (base == 0 || file.base_ns < base)) base = file.base_ns;
  }
  return base;
}

void align_times(Plan& plan, Align align) {
  const RankFile& first = plan.inputs.front();
  plan.base_ns = align == Align::none ? first.base_ns : common_base(plan.inputs);
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    const RankFile& file = plan.inputs[i];
    std::int64_t& shift = plan.report.files[i].shift_ns;
    if (align == Align::start) shift = wrapping_subtract(first.start_ns, file.start_ns);
    if (align == Align::collective && i > 0) shift = collective_shift(first, file);
    if (align == Align::none) shift = wrapping_subtract(plan.base_ns, file.base_ns);
    if (align != Align::clock || file.first_ns > file.last_ns) continue;
    if (file.first_ns <= first.last_ns && first.first_ns <= file.last_ns) continue;
    plan.report.warnings.push_back(fmt::format(
        "the recordings of {} and {} do not overlap{}: --align start lets them begin together, "
        "--align collective lets their collectives end together",
        first.name, file.name,
        first.base_ns == 0 || file.base_ns == 0 ? " (not both have a baseTimeNanoseconds)" : ""));
  }
}

// -- The file --------------------------------------------------------------------------------

// The elements of every file's deviceProperties, each text once.
std::string devices_text(const std::vector<RankFile>& files) {
  std::vector<std::string> devices;
  simdjson::ondemand::parser parser;
  for (const RankFile& file : files) {
    const simdjson::padded_string text(file.devices);
    simdjson::ondemand::document document;
    simdjson::ondemand::array list;
    if (parser.iterate(text).get(document) || document.get_array().get(list)) continue;
    for (auto element : list) {
      simdjson::ondemand::object device;
      std::string_view json;
      if (element.get_object().get(device) || device.raw_json().get(json)) break;
      json.remove_suffix(json.size() - json.rfind('}') - 1);
      if (std::find(devices.begin(), devices.end(), json) == devices.end()) {
        devices.emplace_back(json);
      }
    }
  }
  return fmt::format("[{}]", fmt::join(devices, ",\n  "));
}

const std::string* find(const RankFile& file, const std::string& key) {
  for (const auto& [name, json] : file.top_level) {
    if (name == key) return &json;
  }
  return nullptr;
}

// What every file says alike stays said. A key's text is as it stood between its quotes.
std::string head_text(const Plan& plan) {
  const std::set<std::string_view> own = {"baseTimeNanoseconds", "displayTimeUnit", "traceName",
                                          "ranks", "merged"};
  std::string text = "{\n";
  for (const auto& item : plan.inputs.front().top_level) {
    const bool is_same =
        std::all_of(plan.inputs.begin(), plan.inputs.end(), [&](const RankFile& file) {
          const std::string* other = find(file, item.first);
          return other != nullptr && *other == item.second;
        });
    if (is_same && !own.contains(item.first))
      text += fmt::format("\"{}\": {},\n", item.first, item.second);
  }
  text += fmt::format("\"deviceProperties\": {},\n", devices_text(plan.inputs));
  const std::string* unit = find(plan.inputs.front(), "displayTimeUnit");
  text += fmt::format("\"displayTimeUnit\": {},\n", unit == nullptr ? "\"ms\"" : *unit);
  if (plan.base_ns != 0) text += fmt::format("\"baseTimeNanoseconds\": {},\n", plan.base_ns);
  text += fmt::format("\"ranks\": {},\n\"merged\": [", plan.inputs.size());
  const char* separator = "";
  for (const MergedFile& file : plan.report.files) {
    text += fmt::format("{}{{\"rank\": {}, \"shift_ns\": {}, \"id_offset\": {}}}", separator,
                        file.rank, file.shift_ns, file.id_offset);
    separator = ", ";
  }
  return text + "],\n\"traceEvents\": [\n";
}

// Viewers list processes by these; what the file has of them is changed where it stands.
std::string process_text(const RankFile& file, std::int64_t rank, std::int64_t sort_offset) {
  std::string text;
  const auto add = [&](const std::string& pid, const char* name, const std::string& value) {
    text += fmt::format(
        "{}{{\"name\": \"{}\", \"ph\": \"M\", \"pid\": {}, \"tid\": 0, \"args\": {{{}}}}}",
        text.empty() ? "" : ",\n", name, pid, value);
  };
  for (const auto& [token, process] : file.processes) {
    if (token.starts_with('{') || token.starts_with('[')) continue;
    const std::string pid = ranked(token, rank);
    if (!process.has_name) add(pid, "process_name", "\"name\": " + pid);
    if (!process.has_labels) {
      add(pid, "process_labels", fmt::format("\"labels\": \"rank {}\"", rank));
    }
    if (!process.has_sort_index) {
      add(pid, "process_sort_index", fmt::format("\"sort_index\": {}", sort_offset));
    }
  }
  return text;
}

class Writer : public EventSink {
 public:
  Writer(FileWriter& file, const RankChange& change, bool& is_first)
      : file_(file), rewriter_(change), is_first_(is_first) {}

  void begin_list() override {}
  void add_top_level(std::string_view, std::string_view) override {}

  bool add(std::string_view events, std::size_t capacity) override {
    text_.clear();
    if (!rewriter_.append(events, capacity, text_)) return false;
    write(text_);
    return true;
  }

  void write(std::string_view events) {
    if (events.find_first_not_of(" \n\r\t") == std::string_view::npos) return;
    if (!is_first_) file_.write(",\n");
    is_first_ = false;
    file_.write(events);
  }

 private:
  FileWriter& file_;
  EventRewriter rewriter_;
  bool& is_first_;
  std::string text_;
};

void write(const Plan& plan, const std::filesystem::path& output) {
  FileWriter file(output, output.extension() == ".gz" ? Compression::gzip : Compression::none);
  file.write(head_text(plan));
  bool is_first = true;
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    const RankFile& input = plan.inputs[i];
    const MergedFile& merged = plan.report.files[i];
    const std::int64_t on_base = wrapping_subtract(input.base_ns, plan.base_ns);
    const RankChange change{.rank = merged.rank,
                            .id_offset = merged.id_offset,
                            .time_ns = wrapping_add(on_base, merged.shift_ns),
                            .sort_offset = static_cast<std::int64_t>(i) * kSortRoom};
    Writer writer(file, change, is_first);
    writer.write(process_text(input, merged.rank, change.sort_offset));
    (void)read_in_batches(Input::open(input.path), kBatchSize, &writer);
  }
  file.write("\n]}\n");
  file.finish();
}

void check_paths(const std::vector<std::filesystem::path>& inputs,
                 const std::filesystem::path& output) {
  for (const std::filesystem::path& input : inputs) {
    if (input == "-") {
      throw MergeError("standard input cannot be merged, files are read twice: name a file");
    }
    std::error_code error;
    if (std::filesystem::equivalent(input, output, error)) {
      throw MergeError("the output is one of the files to merge: choose another name for it");
    }
  }
}

}  // namespace

bool MergeReport::complete() const {
  return std::all_of(files.begin(), files.end(),
                     [](const MergedFile& file) { return file.complete; });
}

MergeReport merge(const std::vector<std::filesystem::path>& inputs,
                  const std::filesystem::path& output, Align align) {
  if (inputs.empty()) throw MergeError("there is nothing to merge: name the files of the ranks");
  check_paths(inputs, output);
  Plan plan;
  for (const std::filesystem::path& input : inputs) {
    plan.inputs.push_back(scan(input, plan.inputs.size()));
    for (std::string& warning : plan.inputs.back().warnings) {
      plan.report.warnings.push_back(std::move(warning));
    }
  }
  find_ranks(plan);
  sort_by_rank(plan);
  move_ids(plan);
  align_times(plan, align);
  write(plan, output);
  return std::move(plan.report);
}

}  // namespace trace
