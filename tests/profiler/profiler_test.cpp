// SPDX-License-Identifier: Apache-2.0
#include "profiler/profiler.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "folders.h"
#include "profiler/memory.h"
#include "trace/files.h"
#include "trace/key_averages.h"
#include "trace/reader.h"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
namespace fs = std::filesystem;

namespace {

constexpr prof::Schedule kBlog{.wait = 1, .warmup = 1, .active = 3, .repeat = 1};

at::Tensor small() {
  return at::ones({4, 4});
}

std::int64_t calls(const trace::Trace& trace, std::string_view name) {
  std::int64_t count = 0;
  for (const trace::Event& event : trace.events) count += trace.name(event) == name ? 1 : 0;
  return count;
}

std::string file_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("The active steps are recorded, with their marks, and nothing else") {
  prof::Profiler profiler({.schedule = kBlog});
  for (int step = 0; step < 5; ++step) {
    small().neg();
    profiler.step();
  }
  const trace::Trace& trace = profiler.stop();
  CHECK(calls(trace, "aten::neg") == 3);
  CHECK(calls(trace, "ProfilerStep#1") == 0);
  CHECK(calls(trace, "ProfilerStep#2") == 1);
  CHECK(calls(trace, "ProfilerStep#3") == 1);
  CHECK(calls(trace, "ProfilerStep#4") == 1);
  CHECK(calls(trace, "ProfilerStep#5") == 0);
  CHECK(trace.report.complete());
}

TEST_CASE("Each cycle calls on_trace_ready once, with its own events") {
  std::vector<std::int64_t> negs;
  std::vector<std::string> steps;
  prof::Profiler profiler(
      {.schedule = prof::Schedule{.wait = 1, .warmup = 0, .active = 2, .repeat = 3},
       .on_trace_ready = [&](prof::Profiler& ready) {
         negs.push_back(calls(ready.trace(), "aten::neg"));
         for (const trace::Event& event : ready.trace().events) {
           const std::string_view name = ready.trace().name(event);
           if (name.starts_with("ProfilerStep#")) steps.emplace_back(name);
         }
       }});
  for (int step = 0; step < 12; ++step) {
    small().neg();
    profiler.step();
  }
  CHECK(negs == std::vector<std::int64_t>{2, 2, 2});
  CHECK(steps == std::vector<std::string>{"ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#4",
                                          "ProfilerStep#5", "ProfilerStep#7", "ProfilerStep#8"});
  CHECK(calls(profiler.stop(), "ProfilerStep#7") == 1);  // the last cycle stays
}

TEST_CASE("Without a schedule everything is recorded and no step is marked") {
  prof::Profiler profiler;
  {
    const prof::record_function outer("outer");
    const prof::record_function inner("inner");
    small().neg();
  }
  profiler.step();  // allowed, as in Python: it marks nothing
  small().neg();
  const trace::Trace& trace = profiler.stop();
  CHECK(calls(trace, "aten::neg") == 2);
  CHECK(calls(trace, "outer") == 1);
  CHECK(calls(trace, "inner") == 1);
  for (const trace::Event& event : trace.events) {
    CHECK_FALSE(trace.name(event).starts_with("ProfilerStep#"));
  }
  CHECK(&profiler.stop() == &trace);  // stopping again changes nothing
}

TEST_CASE("Options reach the trace, with the metadata that Python tools expect") {
  prof::Profiler profiler({.profile_memory = true,
                           .with_flops = true,
                           .metadata = {{"shape", std::string("a \"quoted\" \\ text\n")},
                                        {"peak_memory_bytes", std::int64_t{33554432}}}});
  at::bmm(at::ones({2, 3, 4}), at::ones({2, 4, 5}));
  const trace::Trace& trace = profiler.stop();
  CHECK(trace.flag("profile_memory"));
  CHECK(trace.flag("with_flops"));
  CHECK(trace.flag("record_shapes"));  // FLOPs need shapes
  CHECK(trace.metadata_value("peak_memory_bytes") == "33554432");
  CHECK(trace.metadata_value("shape") == R"("a 'quoted' / text ")");
  CHECK_FALSE(trace.memory.empty());
  const std::string table = trace::key_averages(trace).table();
  CHECK_THAT(table, ContainsSubstring("240.000"));  // 2 * 2*3*4*5 FLOPs of the bmm
  CHECK_THAT(table, ContainsSubstring("CPU Mem"));
}

TEST_CASE("A metadata key that would break the file is refused") {
  CHECK_THROWS_MATCHES(prof::Profiler({.metadata = {{"a\"b", std::int64_t{1}}}}), prof::Error,
                       MessageMatches(ContainsSubstring("metadata key")));
  CHECK_NOTHROW(prof::Profiler());  // the refused one left nothing behind
}

TEST_CASE("Misuse is one sentence") {
  SECTION("two at once") {
    prof::Profiler first;
    CHECK_THROWS_MATCHES(prof::Profiler(), prof::Error,
                         MessageMatches(ContainsSubstring("stop() it before")));
    small().neg();
    CHECK(calls(first.stop(), "aten::neg") == 1);  // the first one has lost nothing
  }
  SECTION("a second one after stop") {
    prof::Profiler first;
    first.stop();
    CHECK_NOTHROW(prof::Profiler().stop());
  }
  SECTION("step after stop") {
    prof::Profiler profiler;
    profiler.stop();
    CHECK_THROWS_MATCHES(profiler.step(), prof::Error,
                         MessageMatches(ContainsSubstring("stopped")));
  }
  SECTION("nothing recorded: stopped before, during and after a warm-up without a cycle's end") {
    for (const int steps : {0, 1}) {
      prof::Profiler profiler({.schedule = kBlog});
      for (int step = 0; step < steps; ++step) profiler.step();
      CHECK_THROWS_MATCHES(profiler.stop(), prof::Error,
                           MessageMatches(ContainsSubstring("nothing was recorded")));
    }
    CHECK_NOTHROW(prof::Profiler().stop());
  }
  SECTION("another thread") {
    prof::Profiler profiler;
    std::string message;
    std::thread([&] {
      try {
        profiler.stop();
      } catch (const prof::Error& error) {
        message = error.what();
      }
    }).join();
    CHECK_THAT(message, ContainsSubstring("per thread"));
    CHECK_NOTHROW(profiler.stop());
  }
  SECTION("CUDA without a GPU") {
    if (at::hasCUDA()) SKIP("this machine has a GPU");
    CHECK_THROWS_MATCHES(prof::Profiler({.activities = {prof::Activity::cuda}}), prof::Error,
                         MessageMatches(ContainsSubstring("no GPU")));
  }
}

TEST_CASE("Stopping in the middle of a cycle keeps what was recorded, as torch.profiler does") {
  prof::Profiler profiler({.schedule = kBlog});
  for (int step = 0; step < 3; ++step) {
    small().neg();
    profiler.step();
  }
  CHECK(calls(profiler.stop(), "ProfilerStep#2") == 1);
}

TEST_CASE("A profiler that is thrown away while it records leaves the next one alone") {
  try {
    prof::Profiler profiler;
    small().neg();
    throw std::runtime_error("the loop failed");
  } catch (const std::runtime_error&) {
  }
  prof::Profiler next;
  small().neg();
  CHECK(calls(next.stop(), "aten::neg") == 1);
}

TEST_CASE("An exception in on_trace_ready comes out of step() and ends nothing else") {
  int called = 0;
  prof::Profiler profiler(
      {.schedule = prof::Schedule{.active = 1}, .on_trace_ready = [&](prof::Profiler&) {
         if (++called == 1) throw std::runtime_error("cannot upload");
       }});
  small().neg();
  CHECK_THROWS_AS(profiler.step(), std::runtime_error);
  CHECK(calls(profiler.trace(), "aten::neg") == 1);
}

TEST_CASE("Twenty profiles in one process lose nothing") {
  for (int i = 0; i < 20; ++i) {
    prof::Profiler profiler({.schedule = kBlog});
    for (int step = 0; step < 5; ++step) {
      for (int op = 0; op < 10; ++op) small().neg();
      profiler.step();
    }
    CAPTURE(i);
    CHECK(calls(profiler.stop(), "aten::neg") == 30);
  }
}

TEST_CASE("The exported file reproduces the live table, plain and gzip") {
  prof::Profiler profiler({.schedule = kBlog, .record_shapes = true, .profile_memory = true});
  for (int step = 0; step < 5; ++step) {
    const prof::record_function scope("attn_fwd");
    at::softmax(at::matmul(at::ones({2, 8, 8}), at::ones({2, 8, 8})), -1);
    profiler.step();
  }
  const std::string live =
      trace::key_averages(profiler.stop(), {.group_by_input_shape = true}).table();
  const TemporaryFolder folder;
  for (const char* name : {"deep/er/trace.json", "trace.json.gz"}) {
    const fs::path path = folder.path / name;
    profiler.export_chrome_trace(path);
    const trace::Trace trace = trace::read(path);
    CHECK(trace::key_averages(trace, {.group_by_input_shape = true}).table() == live);
    // The name is the file's own, not that of a temporary folder.
    CHECK(trace.metadata_value("traceName") == fmt::format("\"{}\"", path.filename().string()));
  }
  CHECK(file_text(folder.path / "trace.json.gz").size() <
        file_text(folder.path / "deep/er/trace.json").size() / 4);
  // Holistic Trace Analysis wants to know which rank a file is of.
  CHECK_THAT(
      file_text(folder.path / "deep/er/trace.json"),
      ContainsSubstring(R"("distributedInfo": {"backend": "none", "rank": 0, "world_size": 1})"));
  CHECK(folder.files() == 4);  // two folders, two files, nothing temporary
}

TEST_CASE("A file that cannot be written is an exception, and no half file") {
  prof::Profiler profiler;
  for (int i = 0; i < 2000; ++i) small().neg();  // some hundred kB
  profiler.stop();
  const TemporaryFolder folder;
  SECTION("a file where a folder should be") {
    std::ofstream(folder.path / "taken") << "mine";
    CHECK_THROWS_MATCHES(profiler.export_chrome_trace(folder.path / "taken" / "trace.json"),
                         prof::Error, MessageMatches(ContainsSubstring("cannot write")));
    CHECK(file_text(folder.path / "taken") == "mine");
  }
  SECTION("a folder of that name") {
    fs::create_directory(folder.path / "trace.json");
    CHECK_THROWS_AS(profiler.export_chrome_trace(folder.path / "trace.json"), prof::Error);
    CHECK(folder.files() == 1);
  }
  SECTION("a full disk") {
    const TinyDisk disk;
    if (!disk.mounted) SKIP("mounting a small tmpfs needs root");
    std::ofstream(disk.folder.path / "trace.json") << "of before";
    CHECK_THROWS_MATCHES(profiler.export_chrome_trace(disk.folder.path / "trace.json"), prof::Error,
                         MessageMatches(ContainsSubstring("No space left")));
    CHECK(disk.folder.files() == 1);
    CHECK(file_text(disk.folder.path / "trace.json") == "of before");
  }
}

TEST_CASE("A full disk under TMPDIR is an exception of the recording, and the next one works") {
  const TinyDisk disk;
  if (!disk.mounted) SKIP("mounting a small tmpfs needs root");
  const char* before = std::getenv("TMPDIR");
  const std::string restore = before == nullptr ? "/tmp" : before;
  ::setenv("TMPDIR", disk.folder.path.c_str(), 1);
  {
    prof::Profiler profiler;
    for (int i = 0; i < 2000; ++i) small().neg();
    CHECK_THROWS_MATCHES(profiler.stop(), prof::Error, MessageMatches(ContainsSubstring("TMPDIR")));
    CHECK_THROWS_AS(profiler.trace(), prof::Error);
  }
  CHECK(disk.folder.files() == 0);
  ::setenv("TMPDIR", restore.c_str(), 1);
  prof::Profiler next;
  small().neg();
  CHECK(calls(next.stop(), "aten::neg") == 1);
}

TEST_CASE("peak_memory counts what is alive at once, beyond what was there") {
  const at::Tensor before = at::ones({1024});
  CHECK(prof::peak_memory(at::kCPU, [] {}) == 0);
  CHECK(prof::peak_memory(at::kCPU, [] {
          at::Tensor first = at::empty({1024});  // 4 KiB each
          const at::Tensor second = at::empty({1024});
          first.reset();
          const at::Tensor third = at::empty({1024});
        }) == 8192);
  CHECK(prof::peak_memory(at::kCUDA, [&] { (void)before.add(1); }) == 0);
}
