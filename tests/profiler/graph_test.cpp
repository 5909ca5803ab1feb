// SPDX-License-Identifier: Apache-2.0
#include "profiler/graph.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "explain/op_graph.h"
#include "folders.h"
#include "profiler/error.h"
#include "profiler/profiler.h"
#include "trace/files.h"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
namespace fs = std::filesystem;

namespace {

std::size_t ops(const fs::path& file, const std::string& name) {
  const auto graph = explain::op_graph(explain::read_execution_trace(file), {});
  return static_cast<std::size_t>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(),
                    [&](const explain::OpGraph::Node& node) { return node.name == name; }));
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("record_graph writes what ran in it and nothing else, plain and gzip") {
  const TemporaryFolder folder;
  const at::Tensor x = at::ones({4, 4});
  for (const char* name : {"new/graph.json", "graph.json.gz"}) {
    const fs::path file = folder.path / name;
    x.neg();
    int calls = 0;
    prof::record_graph(file, [&] {
      ++calls;
      x.exp().exp();
    });
    x.neg();
    CHECK(calls == 1);
    CHECK(ops(file, "aten::exp") == 2);
    CHECK(ops(file, "aten::neg") == 0);
  }
  CHECK(text_of(folder.path / "graph.json.gz").starts_with("\x1f\x8b"));
  CHECK(text_of(folder.path / "new/graph.json").find("\"/") == std::string::npos);  // no path
  CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 2);
}

TEST_CASE("What the work throws comes out, no file is left, and the next one works") {
  const TemporaryFolder folder;
  const fs::path file = folder.path / "graph.json";
  CHECK_THROWS_AS(prof::record_graph(file, [] { throw std::logic_error("the forward failed"); }),
                  std::logic_error);
  CHECK(fs::is_empty(folder.path));
  prof::record_graph(file, [] { at::ones({2}).exp(); });
  CHECK(ops(file, "aten::exp") == 1);
}

TEST_CASE("One within another is refused, and the outer one is whole") {
  const TemporaryFolder folder;
  const fs::path outer = folder.path / "outer.json", inner = folder.path / "inner.json";
  prof::record_graph(outer, [&] {
    at::ones({2}).exp();
    CHECK_THROWS_MATCHES(prof::record_graph(inner, [] { at::ones({2}).neg(); }), prof::Error,
                         MessageMatches(ContainsSubstring("remove that one first")));
    at::ones({2}).exp();
  });
  CHECK(ops(outer, "aten::exp") == 2);
  CHECK_FALSE(fs::exists(inner));
}

TEST_CASE("A graph that cannot be written is an exception with a remedy") {
  CHECK_THROWS_AS(prof::record_graph("/proc/no/graph.json", [] { at::ones({2}).exp(); }),
                  trace::WriteError);
  const TemporaryFolder folder;
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "/tmp" : before;
  ::setenv("TMPDIR", "/proc", /*overwrite=*/1);
  CHECK_THROWS_MATCHES(prof::record_graph(folder.path / "graph.json", [] {}), prof::Error,
                       MessageMatches(ContainsSubstring("set TMPDIR")));
  ::setenv("TMPDIR", kept.c_str(), /*overwrite=*/1);
}

TEST_CASE("A full disk under TMPDIR is an exception, and the next graph is whole") {
  const TinyDisk disk;
  if (!disk.mounted) SKIP("only root can make a disk");
  const TemporaryFolder folder;
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "/tmp" : before;
  ::setenv("TMPDIR", disk.folder.path.c_str(), /*overwrite=*/1);
  const at::Tensor x = at::ones({2});
  CHECK_THROWS_MATCHES(prof::record_graph(folder.path / "graph.json",
                                          [&] {
                                            for (int i = 0; i < 1000; ++i) x.exp();
                                          }),
                       prof::Error, MessageMatches(ContainsSubstring("set TMPDIR")));
  ::setenv("TMPDIR", kept.c_str(), /*overwrite=*/1);
  CHECK(std::filesystem::is_empty(folder.path));
  prof::record_graph(folder.path / "graph.json", [&] { x.exp(); });
  CHECK(ops(folder.path / "graph.json", "aten::exp") == 1);
}

TEST_CASE("A profile after a graph is as before") {
  const TemporaryFolder folder;
  prof::record_graph(folder.path / "graph.json", [] { at::ones({2}).exp(); });
  prof::Profiler profiler;
  at::ones({2}).neg();
  const trace::Trace& trace = profiler.stop();
  CHECK(std::count_if(trace.events.begin(), trace.events.end(), [&](const trace::Event& event) {
          return trace.name(event) == "aten::neg";
        }) == 1);
}
