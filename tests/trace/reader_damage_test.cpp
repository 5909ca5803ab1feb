// SPDX-License-Identifier: Apache-2.0
//
// Traces that are cut, damaged or made to break readers.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "describe.h"
#include "trace/batches.h"
#include "trace/files.h"
#include "trace/key_averages.h"
#include "trace/reader.h"

using Catch::Matchers::ContainsSubstring;
using trace::read_text;
using trace::ReadError;
using trace::Trace;

namespace {

// Elements like Kineto's, some with what a wrong cut would break on.
std::vector<std::string> elements_of(int count) {
  std::vector<std::string> elements;
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    const std::string head = R"({"ph": "X", "cat": "cpu_op", "name": "op )" + number +
                             R"(", "pid": 1, "tid": )" + std::to_string(i % 3) +
                             ", \"ts\": " + std::to_string(100 + i) + ".125, \"dur\": 1";
    switch (i % 5) {
      case 0:
        elements.push_back(head + "}");
        break;
      case 1:
        elements.push_back(head + R"(, "args": {"External id": )" + number +
                           R"(, "text": "},{\"ph\": \"X\"},{" }})");
        break;
      case 2:
        elements.push_back(
            head + R"(, "args": {"list": [{"a": 1}, {"ph": "X", "ts": 1}, {"b": [{}, {}]}]}})");
        break;
      case 3:
        elements.push_back(
            R"({"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "}, {"}})");
        break;
      default:
        elements.push_back(R"({"ph": "B", "name": "b\\", "ts": )" + number + R"(, "tid": 9},
        {"ph": "E", "ts": )" +
                           number + R"(.5, "tid": 9})");
        break;
    }
  }
  return elements;
}

std::string joined(const std::vector<std::string>& elements) {
  std::string text;
  for (const std::string& element : elements) text += (text.empty() ? "" : ",\n  ") + element;
  return text;
}

std::string list_of(const std::string& elements) {
  return "{\"traceEvents\": [" + elements + "]}";
}

std::string event_named(const std::string& name) {
  return R"({"ph": "X", "cat": "cpu_op", "name": ")" + name + R"(", "ts": 1, "dur": 2})";
}

// Reads `damaged` between two good events, which must be there, and returns all names.
std::vector<std::string> names_around(const std::string& damaged, Trace* result = nullptr) {
  Trace trace =
      read_text(list_of(event_named("before") + ",\n" + damaged + ",\n" + event_named("after")));
  std::vector<std::string> names;
  for (const trace::Event& event : trace.events) names.emplace_back(trace.name(event));
  REQUIRE(names.size() >= 2);
  CHECK(names.front() == "before");
  CHECK(names.back() == "after");
  CHECK_FALSE(trace.report.truncated);
  if (result != nullptr) *result = std::move(trace);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("the size of the batches makes no difference") {
  std::vector<std::string> texts;
  const std::string events = joined(elements_of(60));
  texts.push_back(list_of(events));
  texts.push_back("[" + events + "]");
  texts.push_back(
      R"({"schemaVersion": 1, "deviceProperties": [{"id": 0}, {"id": 1}], "traceEvents": [)" +
      events +
      R"(], "stackFrames": [{"name": "a"}, {"name": "b"}], "objects": [[{}, {}], {"x": [{}, {}]}],
                  "INFO": ["},{", "[{\"ph\": 1},{"], "with_flops": 1})");
  texts.push_back(R"({"before": [{"ph": "X"}, {"ph": "X"}], "traceEvents" : [ )" + events + " , " +
                  event_named("no \x01 control") + "," + event_named("and \xFF no UTF-8") + "," +
                  events + "]}");
  for (const std::string& text : texts) {
    const Trace whole = read_text(text);
    CHECK(whole.report.complete());
    CHECK(whole.events.size() >= 48);
    for (const std::size_t size : {1, 2, 3, 7, 16, 61, 128, 129, 500, 1000, 4096}) {
      INFO(size);
      const Trace trace = trace::read_in_batches(trace::Input(text), size);
      CHECK(describe(trace) == describe(whole));
      CHECK(trace.report.complete());
      CHECK(trace.report.repaired == whole.report.repaired);
      CHECK(trace.threads.size() == whole.threads.size());
    }
  }
}

TEST_CASE("a file cut after any byte gives the events before the cut") {
  const std::vector<std::string> elements = elements_of(25);
  for (const std::string& head :
       {std::string("{\"with_flops\": 1, \"traceEvents\": ["), std::string("[")}) {
    std::string text = head;
    std::vector<std::size_t> ends;  // of the X events
    std::vector<std::size_t> element_ends;
    for (const std::string& element : elements) {
      if (text.size() > head.size()) text += ", ";
      text += element;
      element_ends.push_back(text.size());
      if (element.starts_with(R"({"ph": "X")")) ends.push_back(text.size());
    }
    text += head == "[" ? "]" : "], \"profile_memory\": 1}";
    const std::size_t whole = text.size();
    text += "\n ";
    for (std::size_t size = 0; size <= text.size(); ++size) {
      INFO("cut after " << size << " of " << text.size());
      const std::string_view cut = std::string_view(text).substr(0, size);
      if (size < element_ends.front()) {
        CHECK_THROWS_AS(read_text(cut), ReadError);
        continue;
      }
      const Trace trace = read_text(cut);
      CHECK(trace.report.complete() == (size >= whole));
      CHECK(trace.report.truncated == (size < whole));
      CHECK(trace.report.warnings.empty() == (size >= whole));
      CHECK(trace.flag("profile_memory") == (head != "[" && size >= whole));
      std::size_t expected = 0;
      for (const std::size_t end : ends) expected += end <= size;
      std::size_t got = 0;
      for (const trace::Event& event : trace.events) got += trace.name(event).starts_with("op ");
      CHECK(got == expected);
    }
  }
}

TEST_CASE("cut and damaged gzip give what could be read") {
  const std::string text = list_of(joined(elements_of(2000)));
  const std::string bytes = trace::gzip(text);
  const auto path = std::filesystem::temp_directory_path() / "prof_reader_cut.json.gz";
  const auto read_bytes = [&path](const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    return trace::read(path);
  };
  const Trace whole = read_bytes(bytes);
  CHECK(whole.report.complete());
  const Trace cut = read_bytes(bytes.substr(0, bytes.size() / 2));
  CHECK(cut.report.truncated);
  CHECK(cut.events.size() > 100);
  CHECK(cut.events.size() < whole.events.size());
  REQUIRE_FALSE(cut.report.warnings.empty());
  CHECK_THAT(cut.report.warnings.back(),
             ContainsSubstring("gzip data is cut short") &&
                 ContainsSubstring("events read: " + std::to_string(cut.events.size())));
  const Trace no_checksum = read_bytes(bytes.substr(0, bytes.size() - 3));
  CHECK(no_checksum.events.size() == whole.events.size());
  CHECK(no_checksum.report.truncated);
  std::string damaged = bytes;
  damaged[bytes.size() / 2] = static_cast<char>(~damaged[bytes.size() / 2]);
  const Trace salvaged = read_bytes(damaged);
  CHECK(salvaged.report.truncated);
  CHECK(salvaged.events.size() > 100);
  std::filesystem::remove(path);
}

TEST_CASE("characters that JSON forbids cost nothing but a note") {
  Trace trace;
  CHECK(names_around(event_named("a\xFF\xE2\x82z"), &trace) ==
        Names{"before", "a\xEF\xBF\xBD\xEF\xBF\xBDz", "after"});
  CHECK(trace.report.repaired == 1);
  CHECK(trace.report.dropped == 0);
  CHECK(trace.report.complete());
  REQUIRE(trace.report.warnings.size() == 1);
  const std::string offset = std::to_string(list_of(event_named("before") + ",\n").size() - 2);
  CHECK_THAT(trace.report.warnings[0],
             ContainsSubstring("mended") && ContainsSubstring("byte " + offset));
  CHECK(names_around(event_named("a\x01\n\x1b[2J")) == Names{"before", "a\x01\n\x1b[2J", "after"});
  CHECK(names_around(event_named(R"(C:\Users\me)")) == Names{"before", R"(C:\Users\me)", "after"});
  CHECK(names_around(event_named(R"(\ud800)")) == Names{"before", "\xEF\xBF\xBD", "after"});
}

TEST_CASE("unused fields never fail an event") {
  for (
      const char* args :
      {R"({"a": NaN, "b": Infinity, "c": -Infinity})",
       R"({"a": 0x7fff12, "b": 123456789012345678901234567890})", "{}", "null", "[]", "7",
       R"("text")", R"({"a": [], "b": {}, "c": {"d": [[[]]]}})",
       R"({"External id": null, "correlation": "none", "stream": {}, "grid": [1, "x", null, 4, 5], "bytes": 1e400})",
       R"({"Input Dims": "odd", "Input type": 7, "Concrete Inputs": null})",
       R"({"est. achieved occupancy %": NaN, "device": 99999999999, "Bytes": [1]})",
       "{\"a\": \"\xFF\", \"b\": \"\x02\", \"c\": \"\\q\"}", "{,}", "{\"a\": ,}", ""}) {
    INFO(args);
    Trace trace;
    CHECK(names_around(R"({"ph": "X", "name": "odd", "ts": 5, "args": )" + std::string(args) + "}",
                       &trace) == Names{"before", "odd", "after"});
    CHECK(trace.report.complete());
  }
}

TEST_CASE("an event without a time is left out and counted") {
  for (const char* ts : {"\"\"", "\"soon\"", "null", "NaN", "[]", "1e300", "{\"a\": 1}"}) {
    INFO(ts);
    Trace trace;
    CHECK(names_around(R"({"ph": "X", "name": "odd", "ts": )" + std::string(ts) + "}", &trace) ==
          Names{"before", "after"});
    CHECK(trace.report.dropped == 1);
    CHECK_FALSE(trace.report.complete());
    REQUIRE(trace.report.warnings.size() == 1);
    const std::string offset = std::to_string(list_of(event_named("before") + ",\n").size() - 2);
    CHECK_THAT(trace.report.warnings[0], ContainsSubstring("byte " + offset));
  }
}

TEST_CASE("elements that are no objects are left out") {
  for (const char* other :
       {"null", "17", "\"{\\\"ph\\\": 1}\"", "[{\"ph\": \"X\", \"ts\": 1}]", "true", "}", ":"}) {
    INFO(other);
    Trace trace;
    CHECK(names_around(other, &trace) == Names{"before", "after"});
    CHECK(trace.report.dropped == 1);
  }
}

TEST_CASE("quotes and brackets that a program forgot cost at most their event") {
  CHECK(names_around(event_named(R"x(Library("x","IMPL"))x")) ==
        Names{"before", R"x(Library("x","IMPL"))x", "after"});
  CHECK(names_around(event_named(R"(say "hi)")) == Names{"before", R"(say "hi)", "after"});
  CHECK(names_around(R"({"ph": "X", "name": "a", tid": 0, "ts": 5})") ==
        Names{"before", "a", "after"});
  CHECK(names_around(R"({"ph": "X", "name": "C:\dir\", "ts": 5})") ==
        Names{"before", R"(C:\dir\)", "after"});
  // Lost ends: the next event is not swallowed.
  CHECK(names_around(R"({"ph": "X", "name": "never ends, )") == Names{"before", "after"});
  CHECK(names_around(R"({"ph": "X", "name": "a", "ts": )") == Names{"before", "after"});
  CHECK(names_around(R"({"ph": "X", "name": "a", "args": {"x": [1, 2}, "ts": 3})") ==
        Names{"before", "after"});
  CHECK(names_around(R"({"ph" "X", "args": {"grid": [1, 2], "name": [{"name": 1}]}})") ==
        Names{"before", "after"});
}

TEST_CASE("an event that swallows the rest of the file is given up") {
  // Its list of numbers lacks the end, so everything that follows could be inside it.
  const std::string open = R"({"ph": "X", "name": "open", "args": {"grid": [1, 2)";
  const Trace trace = read_text(list_of(open + "," + joined(elements_of(2000))));
  CHECK(trace.report.dropped == 1);
  CHECK(trace.events.size() == read_text(list_of(joined(elements_of(2000)))).events.size());
}

TEST_CASE("commas that are missing or too many cost nothing") {
  const Trace trace = read_text(
      "[,{\"ph\": \"X\", \"ts\": 1} {\"ph\": \"X\", \"ts\": 2},, {\"ph\": \"X\", \"ts\": 3}, ]");
  CHECK(trace.events.size() == 3);
  CHECK(trace.report.complete());
}

TEST_CASE("damage beside the event list does not touch the events") {
  const std::string list = "\"traceEvents\": [" + event_named("a") + "]";
  for (const std::string& text :
       {"{" + list + R"(, "INFO": ["he said "no" twice", "b"], "with_flops": 1})",
        "{\"INFO\": [\"he said \"no\" twice\",\n \"b\"], \"with_flops\": 1, " + list + "}",
        "{\"INFO\": [\"two\nlines \xFF \\x\"], \"with_flops\": 1, " + list + "}",
        "{\"with_flops\": 1, \"stack\": [1, {\"x\": ], " + list + "}",
        "{\"with_flops\": 1, " + list + ", \"stack\": [1, {\"x\": ]}"}) {
    INFO(text);
    const Trace trace = read_text(text);
    CHECK(trace.events.size() == 1);
    CHECK(trace.report.complete());
    CHECK(trace.flag("with_flops"));
  }
}

TEST_CASE("a million nested levels are read, in an event and beside the list") {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const Trace trace = read_text("{\"deep\": " + deep +
                                ", \"traceEvents\": [{\"ph\": \"X\", \"ts\": 1, \"args\": " + deep +
                                "}, " + event_named("after") + "]}");
  CHECK(trace.events.size() == 2);
  CHECK(trace.report.complete());
  std::string objects;
  for (int i = 0; i < 200'000; ++i) objects += "{\"ph\":";
  CHECK_THROWS_AS(read_text("[" + objects), ReadError);
  CHECK_THROWS_AS(read_text(std::string(1'000'000, '[')), ReadError);
}

TEST_CASE("an event of many megabytes is passed over, not held") {
  const std::string huge =
      R"({"ph": "X", "ts": 1, "args": {"x": ")" + std::string(80 << 20, 'x') + "\"}}";
  const Trace trace =
      read_text(list_of(event_named("before") + "," + huge + "," + event_named("after")));
  CHECK(trace.events.size() == 2);
  CHECK(trace.report.dropped == 1);
}

TEST_CASE("single bytes that are wrong never crash the reader, nor the table") {
  const std::string text =
      R"({"deviceProperties": [{"id": 0, "name": "x"}], "baseTimeNanoseconds": 1790857026000000000,
    "metadata": {"a": 1}, "traceEvents": [)" +
      joined(elements_of(20)) + R"(], "INFO": ["a", "b"]})";
  std::mt19937 random(7);
  std::size_t read = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string damaged = text;
    const std::size_t place = random() % text.size();
    damaged[place] =
        static_cast<char>(i % 2 == 0 ? random() : damaged[place] ^ (1 << random() % 8));
    INFO("byte " << place << " is " << static_cast<int>(damaged[place]));
    const std::size_t batch = i % 3 == 0 ? 64 : trace::kBatchSize;
    try {
      const Trace trace = trace::read_in_batches(trace::Input(damaged), batch);
      // A wrong byte costs the event it is in, and where it undoes a string or a bracket some more.
      read += trace.events.size() >= 8;
      for (const trace::Event& event : trace.events) REQUIRE(event.thread < trace.threads.size());
      (void)trace::key_averages(trace).table({.sort_by = "cuda_time_total"});
    } catch (const ReadError&) {
    }
  }
  CHECK(read > 9500);
}
