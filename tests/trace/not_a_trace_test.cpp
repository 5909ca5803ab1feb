// SPDX-License-Identifier: Apache-2.0
//
// What is no trace is told by what it is.
#include "trace/not_a_trace.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <string_view>

#include "trace/reader.h"

using Catch::Matchers::ContainsSubstring;

namespace {

std::string refusal(std::string_view text) {
  try {
    (void)trace::read_text(text);
  } catch (const trace::ReadError& error) {
    return error.what();
  }
  return "read";
}

}  // namespace

TEST_CASE("files that people take for traces are named") {
  const auto check = [](std::string_view text, const std::string& kind) {
    CAPTURE(text.substr(0, 60));
    CHECK_THAT(refusal(text), ContainsSubstring("not a trace: it looks like " + kind));
  };
  check(R"({"segments": [{"address": 1, "blocks": []}], "device_traces": [[]]})",
        "an allocator snapshot");
  check(R"([{"address": 1, "total_size": 2, "blocks": [{"size": 1}]}])",
        "the segments of an allocator snapshot");
  check(R"({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": [{"id": 1}], "finish_ts": 1})",
        "an execution trace; draw it with readtrace graph");
  check(R"({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": [{"id": 1}, {"i)",
        "an execution trace");
  check(R"({"rocprofiler-sdk-tool": [{"metadata": {}}]})", "output of rocprofv3");
  check(R"({"context": {}, "benchmarks": []})", "results of Google Benchmark");
  check(R"({"nodes": [], "samples": [], "timeDeltas": []})", "a CPU profile of V8");
  check("{\"ph\": \"X\", \"ts\": 1}\n{\"ph\": \"X\", \"ts\": 2}\n", "single events");
  check(std::string_view("\x80\x04\x95\x00\x00", 5), "a Python pickle");
  check("SQLite format 3", "a database");
  check("<!DOCTYPE html>", "a page of HTML");
  check("-------  ------------  \n", "a printed table");
  check(std::string_view("\xff\xfe{\0", 4), "UTF-16 text");
  check(std::string(257, 'a') + "ustar", "a tar archive");
}

TEST_CASE("JSON without events is refused, an empty list of events is not") {
  CHECK_THAT(refusal("[{}]"), ContainsSubstring("nothing in its list is an event"));
  CHECK_THAT(refusal(R"([{"name": "a"}, {"name": "b"}])"),
             ContainsSubstring("nothing in its list is an event"));
  CHECK_THAT(refusal(R"({"traceEvents": [{"a": 1}]})"),
             ContainsSubstring("nothing in its list is an event"));
  CHECK_THAT(refusal(R"({"model": "x", "layers": [1]})"),
             ContainsSubstring("it has no list of traceEvents"));
  CHECK_THAT(refusal("some words"), ContainsSubstring("it begins with neither { nor ["));
  CHECK(refusal("[]") == "read");
  CHECK(refusal(R"({"schema": "x", "nodes": [], "traceEvents": [{"ph": "X", "ts": 1}]})") ==
        "read");
}

TEST_CASE("the keys of the first object, whatever its values are") {
  const auto keys = [](std::string_view text) {
    std::string all;
    for (const std::string& key : trace::keys_of_first_object(text)) all += key + ' ';
    return all;
  };
  CHECK(keys(R"([ {"a": [1, {"x": 2}], "b" : "}", "c": {"d": 1}} ])") == "a b c ");
  CHECK(keys(R"([{"a": 1, "b": [)") == "a b ");
  CHECK(keys(R"([{"a" 1}])") == "a ");
  CHECK(keys("[]").empty());
  CHECK(keys("[{").empty());
}
