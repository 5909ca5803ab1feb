// SPDX-License-Identifier: Apache-2.0
//
// A merged file holds what its parts hold: every event, its exact time, and no id twice.
#include "trace/merge.h"

#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "trace/files.h"
#include "trace/input.h"
#include "trace/key_averages.h"
#include "trace/merge_scan.h"
#include "trace/reader.h"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;
using trace::Align;

namespace {

namespace fs = std::filesystem;

// A folder of its own, gone when the test is over.
class Folder {
 public:
  Folder()
      : path_(fs::temp_directory_path() / fmt::format("merge_test_{}_{}", ::getpid(), ++count_)) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }
  fs::path operator/(const std::string& name) const { return path_ / name; }
  std::size_t size() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path_), {}));
  }

 private:
  static inline int count_ = 0;
  fs::path path_;
};

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// One op with a kernel, a flow between them, a name of its process; `start` in us.
std::string rank_text(const std::string& top_level, const std::string& start = "100.001") {
  return fmt::format(
      R"({{{}"traceEvents": [
{{"ph": "X", "cat": "cpu_op", "name": "aten::mul", "pid": 7, "tid": 7, "ts": {}, "dur": 9.5, "args": {{"External id": 3, "Ev Idx": 0, "Python id": 5, "Python parent id": null, "Record function id": 0, "Seq": 4, "note": "pid"}}}},
{{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 7, "ts": {}, "dur": 2.000, "args": {{"External id": 3, "correlation": 8, "stream": 7}}}},
{{"ph": "s", "id": 8, "pid": 7, "tid": 7, "ts": {}, "cat": "ac2g", "name": "ac2g"}},
{{"ph": "b", "id": "0x1f", "pid": 7, "tid": 7, "ts": 1, "name": "async"}},
{{"name": "process_name", "ph": "M", "pid": 7, "tid": 0, "args": {{"name": "python"}}}},
{{"name": "process_sort_index", "ph": "M", "pid": 7, "tid": 0, "args": {{"sort_index": 12}}}},
{{"ph": "i", "name": "no process", "ts": 2, "s": "g"}}
]}})",
      top_level, start, start, start);
}

std::string rank_head(int rank, const std::string& more = "") {
  return fmt::format(R"("distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": 2}},{})",
                     rank, more);
}

struct Merged {
  trace::MergeReport report;
  std::string text;
  trace::Trace trace;
};

Merged merge(const std::vector<fs::path>& inputs, Align align = Align::clock) {
  const Folder folder;
  Merged merged{.report = trace::merge(inputs, folder / "all.json", align),
                .text = text_of(folder / "all.json"),
                .trace = {}};
  merged.trace = trace::read_text(merged.text);
  CHECK(merged.trace.report.complete());
  return merged;
}

std::int64_t start_of(const Merged& merged, std::size_t event) {
  return merged.trace.events.at(event).start_ns;
}

}  // namespace

TEST_CASE("Processes and ids of each rank are its own, the rest of an event is as it was") {
  const Folder folder;
  const Merged merged = merge({folder.write("a.json", rank_text(rank_head(1))),
                               folder.write("b.json", rank_text(rank_head(0)))});
  REQUIRE(merged.report.files.size() == 2);
  CHECK(merged.report.files[0].rank == 0);
  CHECK(merged.report.files[0].name == (folder / "b.json").string());
  CHECK(merged.report.files[1].id_offset == 9);  // the largest id is 8
  for (
      const char* part :
      {R"("pid": "rank 0: 7", "tid": 7, "ts": 100.001, "dur": 9.5, "args": {"External id": 3, "Ev Idx": 0, "Python id": 5, "Python parent id": null, "Record function id": 0, "Seq": 4, "note": "pid"}})",
       R"("pid": "rank 1: 7", "tid": 7, "ts": 100.001, "dur": 9.5, "args": {"External id": 12, "Ev Idx": 9, "Python id": 14, "Python parent id": null, "Record function id": 0, "Seq": 4, "note": "pid"}})",
       R"("External id": 12, "correlation": 17, "stream": 7)",
       R"({"ph": "s", "id": 17, "pid": "rank 1: 7")", R"({"ph": "b", "id": "rank 1: 0x1f")",
       R"("args": {"name": "rank 1: python"})", R"("args": {"sort_index": 12})",
       R"("args": {"sort_index": 1000000012})", R"({"pid": "rank 1", "ph": "i")",
       R"("name": "process_name", "ph": "M", "pid": "rank 1: 0")",
       R"("name": "process_labels", "ph": "M", "pid": "rank 1: 7", "tid": 0, "args": {"labels": "rank 1"})"}) {
    INFO(part);
    CHECK_THAT(merged.text, ContainsSubstring(part));
  }
  std::set<std::int64_t> ids;
  for (const trace::Event& event : merged.trace.events) ids.insert(event.external_id);
  CHECK(ids == std::set<std::int64_t>{3, 12});
  CHECK(merged.trace.threads.size() == 4);
}

TEST_CASE("Times stay exact to the ns on one base") {
  const Folder folder;
  const Merged merged =
      merge({folder.write("rank0.json", rank_text(R"("baseTimeNanoseconds": 1790857026000000007,)",
                                                  "5189756503247.827")),
             folder.write("rank1.json", rank_text(R"("baseTimeNanoseconds": 1790857026000000000,)",
                                                  "5189756503247"))});
  CHECK(merged.trace.base_ns == 1790857026000000000);
  CHECK(start_of(merged, 0) == 1790857026000000007 + 5189756503247827);
  CHECK(start_of(merged, 2) == 1790857026000000000 + 5189756503247000);
  CHECK_THAT(merged.text, ContainsSubstring("\"ts\": 5189756503247.834,") &&
                              ContainsSubstring("\"ts\": 5189756503247,"));
  CHECK(merged.report.warnings.empty());

  // More digits than a double has.
  const std::string late = "1712167891234567.125";
  const Merged absolute =
      merge({folder.write("rank0.json", rank_text(R"("baseTimeNanoseconds": 1,)", late)),
             folder.write("rank1.json", rank_text(R"("baseTimeNanoseconds": 8,)", late))});
  CHECK(start_of(absolute, 2) - start_of(absolute, 0) == 7);
  CHECK_THAT(absolute.text, ContainsSubstring("\"ts\": 1712167891234567.132,"));
}

TEST_CASE("The table of the merged file is the sum of its parts' tables") {
  const std::string data = PROF_TEST_DATA "/pytorch/";
  const std::vector<fs::path> inputs{data + "naive.json.gz", data + "inplace.json.gz",
                                     data + "cuda_stack.json.gz"};
  using Key = std::tuple<std::string, bool, bool>;
  struct Sum {
    std::int64_t count = 0;
    double self_device = 0, device = 0, self_cpu = 0, cpu = 0;
  };
  const auto add = [](std::map<Key, Sum>& sums, const trace::Trace& trace) {
    for (const trace::Row& row : trace::key_averages(trace).rows) {
      Sum& sum = sums[{row.name, row.on_device, row.is_annotation}];
      sum.count += row.count;
      sum.self_device += row.self_device_time_total;
      sum.device += row.device_time_total;
      sum.self_cpu += row.self_cpu_time_total;
      sum.cpu += row.cpu_time_total;
    }
  };
  std::map<Key, Sum> parts, whole;
  for (const fs::path& input : inputs) add(parts, trace::read(input));
  for (const Align align : {Align::clock, Align::start, Align::none}) {
    whole.clear();
    add(whole, merge(inputs, align).trace);
    REQUIRE(whole.size() == parts.size());
    for (const auto& [key, sum] : parts) {
      INFO(std::get<0>(key));
      REQUIRE(whole.contains(key));
      CHECK(whole[key].count == sum.count);
      CHECK_THAT(whole[key].self_device, WithinRel(sum.self_device, 1e-9));
      CHECK_THAT(whole[key].device, WithinRel(sum.device, 1e-9));
      CHECK_THAT(whole[key].self_cpu, WithinRel(sum.self_cpu, 1e-6));
      CHECK_THAT(whole[key].cpu, WithinRel(sum.cpu, 1e-6));
    }
  }
}

TEST_CASE("A rank is what the file says, else its name, else its place") {
  const Folder folder;
  const auto ranks = [&](const std::vector<fs::path>& inputs) {
    std::vector<std::string> found;
    for (const trace::MergedFile& file : merge(inputs).report.files) {
      found.push_back(fmt::format("{} by {}", file.rank, file.rank_source));
    }
    return found;
  };
  using Strings = std::vector<std::string>;
  const fs::path two = folder.write("rank9.json", rank_text(rank_head(2)));
  const fs::path named = folder.write("trace_rank-3.json", rank_text(""));
  const fs::path alone =
      folder.write("plain.json", rank_text(R"("distributedInfo": {"rank": 0, "world_size": 1},)"));
  CHECK_THROWS_AS(ranks({two, named, alone}), trace::MergeError);  // alone is at place 2
  CHECK(ranks({two, alone, named}) ==
        Strings{"1 by its position", "2 by distributedInfo", "3 by its name"});

  const fs::path a = folder.write("a.json", rank_text(rank_head(1)));
  const fs::path b = folder.write("b.json", rank_text(rank_head(1)));
  CHECK_THROWS_AS(merge({a, b}), trace::MergeError);
  const fs::path a0 = folder.write("rank0.json", rank_text(rank_head(1)));
  const fs::path b1 = folder.write("rank1.json", rank_text(rank_head(1)));
  CHECK(ranks({a0, b1}) == Strings{"0 by its name", "1 by its name"});
  CHECK_THROWS_AS(merge({a0, a0}), trace::MergeError);
}

TEST_CASE("Ranks in names") {
  const auto rank = [](const char* name) { return trace::rank_in_name(name).value_or(-1); };
  CHECK(rank("rank0.json") == 0);
  CHECK(rank("trace-Rank_12.json.gz") == 12);
  CHECK(rank("job.rank-3.pt.trace.json") == 3);
  CHECK(rank("ranked_rank4.json") == 4);
  CHECK(rank("trace_5.json.gz") == 5);
  CHECK(rank("01_naive.naive.h200.json.gz") == -1);
  CHECK(rank("trace_.json") == -1);
  CHECK(rank("rank99999999999999999999.json") == -1);
  CHECK(rank("8_16.7.json") == 16);
}

TEST_CASE("Align: start lets recordings begin together, none leaves their times alone") {
  const Folder folder;
  const std::vector<fs::path> inputs{
      folder.write("rank0.json", rank_text(R"("baseTimeNanoseconds": 5000000,)", "100.001")),
      folder.write("rank1.json", rank_text(R"("baseTimeNanoseconds": 9000000,)", "700.250"))};
  const Merged clock = merge(inputs);
  CHECK(start_of(clock, 2) == 9'700'250);
  REQUIRE(clock.report.warnings.size() == 1);
  CHECK_THAT(clock.report.warnings[0],
             ContainsSubstring("do not overlap") && ContainsSubstring("--align start"));
  const Merged start = merge(inputs, Align::start);
  CHECK(start_of(start, 0) == 5'100'001);
  CHECK(start_of(start, 2) == 5'100'001);
  CHECK(start.report.files[1].shift_ns == -4'600'249);
  CHECK(start.report.warnings.empty());
  CHECK_THAT(start.text, ContainsSubstring(R"("shift_ns": -4600249)"));
  const Merged none = merge(inputs, Align::none);
  CHECK(start_of(none, 2) == 5'700'250);
  CHECK_THAT(none.text, ContainsSubstring("\"ts\": 700.250"));
}

TEST_CASE("Align: collectives end together in the median, whatever one of them does") {
  const Folder folder;
  const auto text = [](const std::vector<int>& ends, const std::string& name) {
    std::string events;
    for (const int end : ends) {
      events += fmt::format(
          R"({}{{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": 7, "ts": {}, "dur": 10, "args": {{"stream": 7}}}})",
          events.empty() ? "" : ",", name, end - 10);
    }
    return R"({"traceEvents": [)" + events + "]}";
  };
  const fs::path first = folder.write("rank0.json", text({100, 200, 300}, "ncclDevKernel_A"));
  const fs::path other = folder.write("rank1.json", text({1100, 1190, 1300}, "ncclDevKernel_A"));
  const fs::path fewer = folder.write("rank1_b.json", text({1100, 1190}, "ncclDevKernel_A"));
  const fs::path none = folder.write("rank1_c.json", text({1100, 1190, 1300}, "matmul"));
  CHECK(merge({first, other}, Align::collective).report.files[1].shift_ns == -1'000'000);
  CHECK_THROWS_AS(merge({first, fewer}, Align::collective), trace::MergeError);
  CHECK_THROWS_AS(merge({first, none}, Align::collective), trace::MergeError);
}

TEST_CASE("A damaged file is merged as far as it goes, a mended event is valid") {
  const Folder folder;
  const std::string whole = rank_text(rank_head(0));
  const fs::path cut = folder.write("cut.json", whole.substr(0, whole.find("{\"ph\": \"s\"") + 20));
  std::string quotes = rank_text(rank_head(1));
  quotes.replace(quotes.find("aten::mul"), 9, "a \"b\" c");
  const fs::path mended = folder.write("mended.json", quotes);
  const Merged merged = merge({cut, mended});
  CHECK_FALSE(merged.report.complete());
  CHECK_FALSE(merged.report.files[0].complete);
  CHECK(merged.report.files[1].complete);
  REQUIRE(merged.report.warnings.size() == 2);
  CHECK_THAT(merged.report.warnings[0], ContainsSubstring("cut.json: "));
  CHECK(merged.trace.events.size() == 4);
  CHECK(merged.trace.report.repaired == 0);
  CHECK_THAT(merged.text, ContainsSubstring(R"(a \"b\" c)"));
}

TEST_CASE("An event that is damaged where the model does not look is mended, too") {
  const Folder folder;
  std::string flow = rank_text(rank_head(0));
  flow.replace(flow.find("\"id\": 8"), 7, "\"id\": ");
  const Merged merged =
      merge({folder.write("a.json", flow), folder.write("b.json", rank_text(rank_head(1)))});
  CHECK(merged.trace.events.size() == 4);
  REQUIRE(merged.report.warnings.size() == 1);
  CHECK_THAT(merged.report.warnings[0], ContainsSubstring("mended"));
  CHECK_THAT(merged.text, !ContainsSubstring("\"id\": ,"));
}

TEST_CASE("What cannot be merged is refused, and nothing is written") {
  const Folder folder, out;
  const fs::path good = folder.write("rank0.json", rank_text(""));
  const fs::path other = folder.write("rank1.json", rank_text(""));
  const fs::path merged = folder / "merged.json";
  trace::merge({good, other}, merged, Align::clock);
  std::string processes = rank_text("");
  processes.replace(processes.find("\"kernel\", "), 10, "\"cpu_op\", ");
  std::string lists = rank_text("");
  lists.insert(lists.size() - 1, R"(, "traceEvents": [])");
  std::string large = rank_text("");
  large.replace(large.find("\"correlation\": 8"), 16, "\"correlation\": 9223372036854775806");
  for (const fs::path& bad :
       {merged, fs::path("-"), folder.write("rank2.json", processes),
        folder.write("rank3.json", lists), folder.write("rank4.json", large)}) {
    INFO(bad);
    CHECK_THROWS_AS(trace::merge({good, bad}, out / "all.json", Align::clock), trace::MergeError);
  }
  CHECK_THROWS_AS(trace::merge({good, folder / "none.json"}, out / "all.json", Align::clock),
                  trace::ReadError);
  CHECK_THROWS_AS(trace::merge({good, other}, good, Align::clock), trace::MergeError);
  CHECK(out.size() == 0);
}

TEST_CASE("Ids beyond what a double holds are said") {
  const Folder folder;
  std::string large = rank_text("");
  large.replace(large.find("\"correlation\": 8"), 16, "\"correlation\": 9007199254740992");
  const Merged merged =
      merge({folder.write("rank0.json", large), folder.write("rank1.json", rank_text(""))});
  REQUIRE(merged.report.warnings.size() == 1);
  CHECK_THAT(merged.report.warnings[0], ContainsSubstring("doubles"));
}

TEST_CASE("Keys that all files have alike stay, devices stand once, gzip by the name") {
  const Folder folder;
  const std::string gpu = R"("deviceProperties": [{"id": 0, "name": "G"}],)";
  const fs::path a =
      folder.write("rank0.json",
                   rank_text(gpu + R"("with_flops": 1, "trace_id": "A", "metadata": {"x": [1]},)"));
  const fs::path b =
      folder.write("rank1.json",
                   rank_text(gpu + R"("with_flops": 1, "trace_id": "B", "metadata": {"x": [1]},)"));
  trace::merge({a, b}, folder / "new" / "all.json.gz", Align::clock);
  CHECK_THAT(text_of(folder / "new" / "all.json.gz"), Catch::Matchers::StartsWith("\x1f\x8b"));
  const trace::Trace trace = trace::read(folder / "new" / "all.json.gz");
  CHECK(trace.flag("with_flops"));
  CHECK(trace.metadata_value("trace_id").empty());
  CHECK(trace.metadata_value("ranks") == "2");
  CHECK(trace.devices.size() == 1);
  CHECK(trace.events.size() == 4);
}

TEST_CASE("Files of many batches keep every event") {
  const Folder folder;
  std::string events;
  for (int i = 0; i < 20'000; ++i) {
    events += fmt::format(
        R"({}{{"ph": "X", "cat": "cpu_op", "name": "op, {{", "pid": 7, "tid": 7, "ts": {}, "dur": 1, "args": {{"External id": {}}}}})",
        i == 0 ? "" : ",\n", i, i);
  }
  const std::string text = R"({"traceEvents": [)" + events + "]}";
  const Merged merged = merge({folder.write("rank0.json", text), folder.write("rank1.json", text)});
  REQUIRE(merged.trace.events.size() == 40'000);
  std::set<std::int64_t> ids;
  for (const trace::Event& event : merged.trace.events) ids.insert(event.external_id);
  CHECK(ids.size() == 39'999);  // 0 is no id, in both
}

TEST_CASE("A file that is written in pieces: whole or not at all, compressed as one") {
  const Folder folder;
  const std::string text(3'000'000, 'x');
  {
    trace::FileWriter unfinished(folder / "half.json", trace::Compression::none);
    unfinished.write(text);
  }
  CHECK(folder.size() == 0);
  trace::FileWriter writer(folder / "whole.gz", trace::Compression::gzip);
  for (std::size_t i = 0; i < text.size(); i += 1000) writer.write({text.data() + i, 1000});
  writer.finish();
  trace::write_file(folder / "one.gz", trace::gzip(text));
  for (const char* name : {"whole.gz", "one.gz"}) {
    trace::Input input = trace::Input::open(folder / name);
    std::string read(text.size() + 1, ' ');
    read.resize(input.read(read.data(), read.size()));
    CHECK(input.problem().empty());
    CHECK(read == text);
  }
}
