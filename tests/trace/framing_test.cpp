// SPDX-License-Identifier: Apache-2.0
#include "trace/framing.h"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "trace/repair.h"

using trace::Framer;
using trace::Framing;

namespace {

struct Framed {
  Framing framing;
  std::size_t end;
  bool operator==(const Framed&) const = default;
};

Framed frame(std::string_view text) {
  Framer framer;
  std::size_t position = 0;
  const Framing framing = framer.advance(text, position);
  return {framing, position};
}

std::string mended(std::string_view text) {
  const trace::Repair repair = trace::repair(text);
  return repair.framing == Framing::whole ? repair.text : "not mended";
}

}  // namespace

TEST_CASE("a value ends where its last bracket, quote or digit does") {
  CHECK(frame(R"({"a": 1} x)") == Framed{Framing::whole, 8});
  CHECK(frame(R"([1, [2, {}], []],)") == Framed{Framing::whole, 16});
  CHECK(frame(R"("a\"}b", 1)") == Framed{Framing::whole, 7});
  CHECK(frame(R"("\\", 1)") == Framed{Framing::whole, 4});
  CHECK(frame("12.5,") == Framed{Framing::whole, 4});
  CHECK(frame("NaN}") == Framed{Framing::whole, 3});
  CHECK(frame(R"({"a": {"b": "},{"}, "c": "]"})") == Framed{Framing::whole, 29});
}

TEST_CASE("a value whose end is not there needs more, at every cut") {
  const std::string text = R"({"a": [1, {"b": "x\"y"}, -2.5e3], "c": null})";
  for (std::size_t size = 0; size < text.size(); ++size) {
    INFO(text.substr(0, size));
    CHECK(frame(text.substr(0, size)) == Framed{Framing::needs_more, size});
  }
  CHECK(frame(text) == Framed{Framing::whole, text.size()});
}

TEST_CASE("a value in pieces is the same value") {
  const std::string text = R"({"a": [1, {"b": "x\"y\\"}, -2.5e3], "c": {}, "d": []} , {)";
  for (std::size_t piece = 1; piece < 10; ++piece) {
    Framer framer;
    std::size_t position = 0;
    Framing framing = Framing::needs_more;
    for (std::size_t size = 0; framing == Framing::needs_more; size += piece) {
      framing = framer.advance(std::string_view(text).substr(0, size), position);
    }
    CHECK(framing == Framing::whole);
    CHECK(position == text.find(" , {"));
  }
}

TEST_CASE("damage shows where it is") {
  CHECK(frame(R"({"name": "a"b", "ph": "X"})") == Framed{Framing::broken, 12});
  CHECK(frame(R"({"a": 1, tid": 0})") == Framed{Framing::broken, 9});
  CHECK(frame(R"({"a" 1})") == Framed{Framing::broken, 5});
  CHECK(frame(R"({"a": })") == Framed{Framing::broken, 6});
  CHECK(frame(R"({"a": [1}])") == Framed{Framing::broken, 8});
  CHECK(frame(R"([1 2])") == Framed{Framing::broken, 3});
  CHECK(frame("}") == Framed{Framing::broken, 0});
}

TEST_CASE("a million levels are followed without recursion") {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  CHECK(frame(deep) == Framed{Framing::whole, deep.size()});
}

TEST_CASE("a cut stands between two objects") {
  const std::string text = R"({"a": 1}, {"b": [2, {"c": 3}]} , {"d")";
  CHECK(trace::find_cut(text) == text.find(" , {\"d\"") + 1);
  CHECK(trace::find_cut(R"({"a": {"b": 1}})") == std::string_view::npos);
  CHECK(trace::find_cut("") == std::string_view::npos);
  CHECK(trace::find_cut("{") == std::string_view::npos);
}

TEST_CASE("an event start is a brace before a key of events, and no value") {
  CHECK(trace::is_event_start(R"({ "ph": "X")", 0));
  CHECK(trace::is_event_start("},\n  {\n    \"name\" : 1", 5));
  CHECK_FALSE(trace::is_event_start(R"({"phase": 1)", 0));
  CHECK_FALSE(trace::is_event_start(R"("args": {"name": "x"})", 8));
  CHECK_FALSE(trace::is_event_start(R"({"ph")", 0));
  CHECK_FALSE(trace::is_event_start("{", 0));
  CHECK(trace::find_event_start(R"({"x": {"name": 1}}, {"ts": 1})", 0) == 20);
}

TEST_CASE("valid JSON is not changed by mending") {
  for (const char* text :
       {R"({"a": 1, "b": [true, null, -1.5e3, "x"], "c": {"d": {}}})", R"({})", R"([[], {}])",
        R"({"say \"hi\"": "a \"b\", c", "d": "\\", "e": "\u00e4\n\ud83d\ude00"})",
        R"({"text": "{\"ph\": \"X\", \"ts\": 1}, {", "next": "}"})"}) {
    std::string compact = mended(text), expected = text;
    std::erase(expected, ' ');  // white space between tokens is not kept
    std::erase(compact, ' ');
    CHECK(compact == expected);
  }
}

TEST_CASE("characters that JSON forbids are mended") {
  CHECK(mended("{\"a\": \"x\x01y\n\"}") == "{\"a\":\"x\\u0001y\\u000a\"}");
  CHECK(mended(R"({"a": "C:\Users\me"})") == R"({"a":"C:\\Users\\me"})");
  CHECK(mended(R"({"a": "\ud800x", "b": "\udc00"})") ==
        "{\"a\":\"\xEF\xBF\xBDx\",\"b\":\"\xEF\xBF\xBD\"}");
  CHECK(mended(R"({"a": "\u12G4"})") == R"({"a":"\\u12G4"})");
}

TEST_CASE("invalid UTF-8 becomes as many U+FFFD as Python's replace gives") {
  const auto fffd = [](int count) {
    std::string text = "\"";
    for (int i = 0; i < count; ++i) text += "\xEF\xBF\xBD";
    return text + "\"";
  };
  CHECK(mended("\"\xFF\",") == fffd(1));
  CHECK(mended("\"\x80\xBF\",") == fffd(2));
  CHECK(mended("\"\xE2\x82\",") == fffd(1));          // a cut euro sign
  CHECK(mended("\"\xF0\x9F\x98\",") == fffd(1));      // a cut emoji
  CHECK(mended("\"\xC0\xAF\",") == fffd(2));          // overlong
  CHECK(mended("\"\xED\xA0\x80\",") == fffd(3));      // a surrogate
  CHECK(mended("\"\xF4\x90\x80\x80\",") == fffd(4));  // beyond U+10FFFF
  CHECK(mended("\"\xC3\xA4\xE2\x82\xAC\",") == "\"\xC3\xA4\xE2\x82\xAC\"");
}

TEST_CASE("quotes that a program forgot are mended") {
  CHECK(mended(R"x({"name": "Library("x","IMPL")", "pid": 1})x") ==
        R"x({"name":"Library(\"x\",\"IMPL\")","pid":1})x");
  CHECK(mended(R"({"ph": "X", tid": 0, "ts": 1})") == R"({"ph":"X","tid":0,"ts":1})");
  CHECK(mended(R"({"file": "C:\dir\", "pid": 1})") == R"({"file":"C:\\dir\\","pid":1})");
  CHECK(mended(R"(["he said "no" twice", "b"])") == R"(["he said \"no\" twice","b"])");
}

TEST_CASE("missing values and superfluous commas are mended") {
  CHECK(mended(R"({"args": , "b": 1})") == R"({"args":null,"b":1})");
  CHECK(mended(R"({"a": })") == R"({"a":null})");
  CHECK(mended(R"({"args": {, "x": 1,}, })") == R"({"args":{"x":1}})");
  CHECK(mended(R"([1,,2,])") == R"([1,2])");
}

TEST_CASE("an event that lost its end is not mended with the next one's") {
  const std::string text = R"({"name": "never ends, "ts": 1}, {"ph": "X", "name": "b"})";
  const std::string cut = R"({"ph": "X", "args": {"a": 1, {"ph": "X", "ts": 2})";
  CHECK(trace::repair(cut).framing == Framing::broken);
  CHECK(trace::repair(cut).end == cut.rfind('{'));
  CHECK(trace::repair(text.substr(0, 20) + text.substr(30)).framing == Framing::broken);
}
